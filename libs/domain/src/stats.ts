import { type Attempt, endedAtMs, type Outcome } from './delivery/delivery.ts';

/** The spans of time for which there are figures. */
export const STEPS = ['minute', 'hour', 'day'] as const;
export type Step = (typeof STEPS)[number];

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

export const STEP_MS: Readonly<Record<Step, number>> = {
  minute: MINUTE_MS,
  hour: HOUR_MS,
  day: 24 * HOUR_MS,
};

/**
 * The longest span with figures for each step, in milliseconds: a day of minutes, 31 days of hours or days. So a
 * response has 1,440 points at most, and is made from 745 documents at most.
 */
export const MAX_SPAN_MS: Readonly<Record<Step, number>> = {
  minute: STEP_MS.day,
  hour: 31 * STEP_MS.day,
  day: 31 * STEP_MS.day,
};

/** The span that is shown unless a client says otherwise: 60 minutes, 24 hours or 30 days. */
export const DEFAULT_SPAN_MS: Readonly<Record<Step, number>> = {
  minute: 60 * MINUTE_MS,
  hour: 24 * HOUR_MS,
  day: 30 * STEP_MS.day,
};

/** The beginning of the step of that time, in UTC; both in milliseconds since 1970. */
export function beginningOf(step: Step, ms: number): number {
  return ms - (ms % STEP_MS[step]);
}

/** From the first millisecond to the one after the last, in milliseconds since 1970. */
export interface Span {
  fromMs: number;
  toMs: number;
}

/** Returns the whole steps that the span touches. */
export function wholeSteps(step: Step, { fromMs, toMs }: Span): Span {
  const last = beginningOf(step, Math.max(fromMs, toMs - 1));
  return { fromMs: beginningOf(step, fromMs), toMs: last + STEP_MS[step] };
}

/**
 * Upper bounds of the durations that are counted apart, in milliseconds; what is longer than the last one
 * is counted too. A percentile is read from them, so it is off by less than the width of its bucket. They are
 * stored by index: a change would mix two meanings in what is stored.
 */
export const DURATION_BOUNDS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000,
] as const;

/** Counts of attempts, of one webhook, app or company in some span of time. What is absent is 0. */
export interface AttemptCounts {
  outcomes: Partial<Record<Outcome, number>>;
  /** Attempts that were the first of their delivery. */
  firstAttempts: number;
  /** Bytes of the payloads that were sent. */
  payloadBytes: number;
  /** The sum of all durations. */
  durationMs: number;
  maxDurationMs: number;
  /** Attempts by duration, by index in DURATION_BOUNDS_MS; one more for longer ones. */
  durations: Record<number, number>;
}

/** An attempt that was made, as it is counted. */
export interface CountedAttempt {
  attempt: Pick<Attempt, 'outcome' | 'number' | 'trigger' | 'startedAtMs' | 'durationMs'>;
  /** 0 when nothing was sent. */
  payloadBytes: number;
}

export function noAttempts(): AttemptCounts {
  return {
    outcomes: {},
    firstAttempts: 0,
    payloadBytes: 0,
    durationMs: 0,
    maxDurationMs: 0,
    durations: {},
  };
}

/** Counts one attempt more. In place: it is called three times for each attempt. */
export function countAttempt(
  counts: AttemptCounts,
  { attempt, payloadBytes }: CountedAttempt,
): void {
  const { outcome, number, durationMs } = attempt;
  const bucket = bucketOf(durationMs);
  counts.outcomes[outcome] = (counts.outcomes[outcome] ?? 0) + 1;
  counts.durations[bucket] = (counts.durations[bucket] ?? 0) + 1;
  if (number === 1) counts.firstAttempts += 1;
  counts.payloadBytes += payloadBytes;
  counts.durationMs += durationMs;
  if (durationMs > counts.maxDurationMs) counts.maxDurationMs = durationMs;
}

/** Adds counts to `sum`, in place. */
export function addCounts(sum: AttemptCounts, more: Partial<AttemptCounts>): void {
  for (const [outcome, count] of Object.entries(more.outcomes ?? {}) as [Outcome, number][]) {
    sum.outcomes[outcome] = (sum.outcomes[outcome] ?? 0) + count;
  }
  for (const [index, count] of Object.entries(more.durations ?? {})) {
    sum.durations[Number(index)] = (sum.durations[Number(index)] ?? 0) + count;
  }
  sum.firstAttempts += more.firstAttempts ?? 0;
  sum.payloadBytes += more.payloadBytes ?? 0;
  sum.durationMs += more.durationMs ?? 0;
  sum.maxDurationMs = Math.max(sum.maxDurationMs, more.maxDurationMs ?? 0);
}

export function attemptsIn({ outcomes }: Pick<AttemptCounts, 'outcomes'>): number {
  return Object.values(outcomes).reduce((sum, count) => sum + count, 0);
}

export function successesIn({ outcomes }: Pick<AttemptCounts, 'outcomes'>): number {
  return outcomes.success ?? 0;
}

/** The minute, hour or day in which an attempt counts is that in which it ended. */
export function countedAtMs({ attempt }: CountedAttempt): number {
  return endedAtMs(attempt);
}

/** Sixteen comparisons at most: a binary search is no faster, because most attempts are short. */
function bucketOf(durationMs: number): number {
  let index = 0;
  for (const bound of DURATION_BOUNDS_MS) {
    if (durationMs <= bound) return index;
    index += 1;
  }
  return index;
}

/** How long attempts took, in whole milliseconds. The percentiles are estimates from buckets. */
interface DurationFigures {
  mean: number;
  max: number;
  p50: number;
  p95: number;
  p99: number;
}

type Counted = Pick<AttemptCounts, 'outcomes' | 'durations' | 'durationMs' | 'maxDurationMs'>;

/** Null when there was no attempt. */
export function durationFiguresOf(counts: Counted): DurationFigures | null {
  const attempts = attemptsIn(counts);
  if (attempts === 0) return null;
  const percentile = (share: number): number => Math.round(percentileMs(counts, attempts * share));
  return {
    mean: Math.round(counts.durationMs / attempts),
    max: Math.round(counts.maxDurationMs),
    p50: percentile(0.5),
    p95: percentile(0.95),
    p99: percentile(0.99),
  };
}

/**
 * The duration below which `rank` attempts were, as if those of each bucket were spread evenly over it. No
 * estimate is above the longest duration, which is known.
 */
function percentileMs({ durations, maxDurationMs }: Counted, rank: number): number {
  let below = 0;
  let lowerMs = 0;
  for (const [index, upperMs] of DURATION_BOUNDS_MS.entries()) {
    const inBucket = durations[index] ?? 0;
    if (inBucket > 0 && below + inBucket >= rank) {
      const estimateMs = lowerMs + ((upperMs - lowerMs) * (rank - below)) / inBucket;
      return Math.min(estimateMs, maxDurationMs);
    }
    below += inBucket;
    lowerMs = upperMs;
  }
  return maxDurationMs;
}

/** The spans of time that an overview may cover, up to now. */
export const RANGES = ['1h', '24h', '7d', '30d'] as const;
export type Range = (typeof RANGES)[number];

const DAY_MS = STEP_MS.day;

const SHAPES: Readonly<Record<Range, { step: Step; spanMs: number }>> = {
  '1h': { step: 'minute', spanMs: HOUR_MS },
  '24h': { step: 'hour', spanMs: DAY_MS },
  '7d': { step: 'hour', spanMs: 7 * DAY_MS },
  '30d': { step: 'day', spanMs: 30 * DAY_MS },
};

export interface RangeSpan {
  /** What one point of the range stands for. */
  step: Step;
  /** Whole steps, of which the last one has just begun. */
  span: Span;
}

export function spanOfRange(range: Range, nowMs: number): RangeSpan {
  const { step, spanMs } = SHAPES[range];
  const toMs = beginningOf(step, nowMs) + STEP_MS[step];
  return { step, span: { fromMs: toMs - spanMs, toMs } };
}

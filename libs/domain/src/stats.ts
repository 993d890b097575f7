import { type Attempt, endedAtMs, type Outcome } from './delivery/delivery.ts';

/** The lengths of time for which there are figures. */
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
 * The longest period for each step, in milliseconds: a day of minutes, 31 days of hours or days. A response then has
 * at most 1,440 points, from at most 745 documents.
 */
export const MAX_SPAN_MS: Readonly<Record<Step, number>> = {
  minute: STEP_MS.day,
  hour: 31 * STEP_MS.day,
  day: 31 * STEP_MS.day,
};

/** The default period: 60 minutes, 24 hours or 30 days. */
export const DEFAULT_SPAN_MS: Readonly<Record<Step, number>> = {
  minute: 60 * MINUTE_MS,
  hour: 24 * HOUR_MS,
  day: 30 * STEP_MS.day,
};

/** Returns the beginning of the step with this time, in UTC; both in milliseconds since 1970. */
export function beginningOf(step: Step, ms: number): number {
  return ms - (ms % STEP_MS[step]);
}

/** From the first millisecond to the one after the last, in milliseconds since 1970. */
export interface Span {
  fromMs: number;
  toMs: number;
}

/** Returns the whole steps that the period touches. */
export function wholeSteps(step: Step, { fromMs, toMs }: Span): Span {
  const last = beginningOf(step, Math.max(fromMs, toMs - 1));
  return { fromMs: beginningOf(step, fromMs), toMs: last + STEP_MS[step] };
}

/**
 * The upper bounds of the buckets of durations, in milliseconds; one more bucket has longer durations. Percentiles
 * are estimated from the buckets, so their error is less than the width of a bucket. Counts are stored by index, so a
 * change would mix two meanings in the stored counts.
 */
export const DURATION_BOUNDS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000,
] as const;

/** Counts of the attempts of one webhook, app or company in a period. Absent counts are 0. */
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

/** The attempts to one webhook that ended in one minute. */
export interface WebhookMinute {
  companyId: string;
  webhookId: string;
  /** The app of the webhook; null for a global one. */
  appId: string | null;
  /** The beginning of the minute, in milliseconds since 1970. */
  minuteMs: number;
  counts: AttemptCounts;
}

/** The messages of one company that were accepted in one hour. */
export interface CompanyMessages {
  companyId: string;
  /** The beginning of the hour, in milliseconds since 1970. */
  hourMs: number;
  messages: number;
  /** Bytes of their payloads. */
  messageBytes: number;
}

/** The counted properties of an attempt. */
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

/** Adds an attempt, in place: the function is called for each attempt. */
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

/** Counts as they are written in JSON, where many of them are stored together: a third of the size, without names. */
export type PackedCounts = readonly [
  firstAttempts: number,
  payloadBytes: number,
  durationMs: number,
  maxDurationMs: number,
  outcomes: AttemptCounts['outcomes'],
  durations: AttemptCounts['durations'],
];

export function packCounts(counts: AttemptCounts): PackedCounts {
  const { firstAttempts, payloadBytes, durationMs, maxDurationMs, outcomes, durations } = counts;
  return [firstAttempts, payloadBytes, durationMs, maxDurationMs, outcomes, durations];
}

export function unpackCounts(packed: PackedCounts): AttemptCounts {
  const [firstAttempts, payloadBytes, durationMs, maxDurationMs, outcomes, durations] = packed;
  return { firstAttempts, payloadBytes, durationMs, maxDurationMs, outcomes, durations };
}

export function attemptsIn({ outcomes }: Pick<AttemptCounts, 'outcomes'>): number {
  return Object.values(outcomes).reduce((sum, count) => sum + count, 0);
}

export function successesIn({ outcomes }: Pick<AttemptCounts, 'outcomes'>): number {
  return outcomes.success ?? 0;
}

/** An attempt counts in the minute, hour and day in which it ended. */
export function countedAtMs({ attempt }: CountedAttempt): number {
  return endedAtMs(attempt);
}

/** Makes at most sixteen comparisons: a binary search is no faster, because most attempts are short. */
function bucketOf(durationMs: number): number {
  let index = 0;
  for (const bound of DURATION_BOUNDS_MS) {
    if (durationMs <= bound) return index;
    index += 1;
  }
  return index;
}

/** Durations of attempts, in whole milliseconds. The percentiles are estimates from buckets. */
interface DurationFigures {
  mean: number;
  max: number;
  p50: number;
  p95: number;
  p99: number;
}

type Counted = Pick<AttemptCounts, 'outcomes' | 'durations' | 'durationMs' | 'maxDurationMs'>;

/** Returns null without attempts. */
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
 * Returns the duration below which `rank` attempts were, if the attempts of each bucket were spread evenly over it.
 * The estimate is at most the longest duration, which is known.
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

/** The periods of an overview, up to now. */
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
  /** The time that one point covers. */
  step: Step;
  /** Whole steps; the last one contains the present. */
  span: Span;
}

export function spanOfRange(range: Range, nowMs: number): RangeSpan {
  const { step, spanMs } = SHAPES[range];
  const toMs = beginningOf(step, nowMs) + STEP_MS[step];
  return { step, span: { fromMs: toMs - spanMs, toMs } };
}

import { endedAtMs, type Attempt } from '../message/delivery.ts';
import type { Outcome } from '../outcome.ts';

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

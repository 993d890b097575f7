import { delayAfterAttempt, type RetrySchedule } from './retry-schedule.ts';

/** An attempt that is to be made later. */
export interface NextAttempt {
  attemptNumber: number;
  delayMs: number;
  /** Milliseconds since 1970. */
  dueAtMs: number;
}

/**
 * What follows a failed attempt; null when it was the last of the schedule. The delay counts from
 * the end of the failed attempt (spec, Events, rule 4).
 */
export function nextAttemptAfter(
  failed: { attemptNumber: number; endedAtMs: number },
  schedule: RetrySchedule,
): NextAttempt | null {
  const delayMs = delayAfterAttempt(schedule, failed.attemptNumber);
  if (delayMs === null) return null;
  return {
    attemptNumber: failed.attemptNumber + 1,
    delayMs,
    dueAtMs: failed.endedAtMs + delayMs,
  };
}

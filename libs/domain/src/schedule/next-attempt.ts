import { delayAfterAttempt, type RetrySchedule } from './retry-schedule.ts';

/** The attempt that follows a failed one. */
export interface NextAttempt {
  attemptNumber: number;
  /** Between the end of the failed attempt and this one. */
  delayMs: number;
  /** Milliseconds since 1970. */
  dueAtMs: number;
}

/**
 * The attempt after a failed one; null when that was the last of the schedule. The delay counts from
 * the end of the failed attempt (docs/contract.md C10.5).
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

import { describe, expect, test } from '@jest/globals';
import { nextAttemptAfter } from './after-failure.ts';
import { DEFAULT_RETRY_DELAYS, retryScheduleSchema } from './retry-schedule.ts';

const schedule = retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS);

describe('what follows a failed attempt', () => {
  test('is the next attempt, its delay counted from the end of the failed one', () => {
    expect(nextAttemptAfter({ attemptNumber: 2, endedAtMs: 1_000 }, schedule)).toEqual({
      attemptNumber: 3,
      delayMs: 300_000,
      dueAtMs: 301_000,
    });
  });

  test('is nothing after the last of the schedule', () => {
    expect(nextAttemptAfter({ attemptNumber: 7, endedAtMs: 1_000 }, schedule)).toBeNull();
  });
});

import { describe, expect, test } from '@jest/globals';
import { nextAttemptAfter } from './next-attempt.ts';
import { DEFAULT_RETRY_DELAYS, retryScheduleSchema } from './retry-schedule.ts';

const schedule = retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS);

describe('the attempt after a failed one', () => {
  test('is due its delay after the end of the failed attempt', () => {
    expect(nextAttemptAfter({ attemptNumber: 2, endedAtMs: 1_000 }, schedule)).toEqual({
      attemptNumber: 3,
      delayMs: 300_000,
      dueAtMs: 301_000,
    });
  });

  test('is null after the last of the schedule', () => {
    expect(nextAttemptAfter({ attemptNumber: 7, endedAtMs: 1_000 }, schedule)).toBeNull();
  });
});

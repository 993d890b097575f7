import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  DEFAULT_RETRY_DELAYS,
  delayAfterAttempt,
  formatDelay,
  retryScheduleSchema,
} from './retry-schedule.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

describe('the retry schedule', () => {
  const schedule = retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS);

  test('is by default the one of docs/contract.md C10.4', () => {
    expect(schedule).toEqual([
      ...[5_000, 5 * MINUTE_MS, 30 * MINUTE_MS],
      ...[2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS],
    ]);
  });

  test('has six delays: the n-th follows attempt n, and none follows the seventh', () => {
    expect([1, 2, 3, 4, 5, 6].map((number) => delayAfterAttempt(schedule, number))).toEqual(
      schedule,
    );
    expect(delayAfterAttempt(schedule, 7)).toBeNull();
    expect(delayAfterAttempt(schedule, 8)).toBeNull();
  });

  test('accepts milliseconds and spaces around the commas', () => {
    expect(retryScheduleSchema.parse('10ms , 1500ms, 168h')).toEqual([10, 1_500, 168 * HOUR_MS]);
  });

  test.each([
    ...['', ' ', '5', '5s,', ',5s', '5d', '-5s', '1.5s', '5 s', '5S', '1e3s', '0s', '9ms', '169h'],
    ...['5s;5m', '9999999999s', Array<string>(21).fill('1s').join(',')],
  ])('refuses %j', (text) => {
    const result = retryScheduleSchema.safeParse(text);
    expect(result.success).toBe(false);
    expect(result.error?.issues).toHaveLength(1);
    expect(result.error?.issues[0]?.message).toMatch(/^must be 1 to 20 delays/);
  });

  test('accepts twenty delays', () => {
    expect(retryScheduleSchema.parse(Array<string>(20).fill('1s').join(','))).toHaveLength(20);
  });
});

describe('formatDelay', () => {
  test.each([
    [10, '10ms'],
    [1_001, '1001ms'],
    [5_000, '5s'],
    [90_000, '90s'],
    [300_000, '5m'],
    [7_200_000, '2h'],
    [5_400_000, '90m'],
  ])('spells %d ms as %s', (delayMs, text) => {
    expect(formatDelay(delayMs)).toBe(text);
  });

  test('writes what the schedule reads back as the same delay', () => {
    fc.assert(
      fc.property(fc.integer({ min: 10, max: 168 * HOUR_MS }), (delayMs) => {
        expect(retryScheduleSchema.parse(formatDelay(delayMs))).toEqual([delayMs]);
      }),
    );
  });
});

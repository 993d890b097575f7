import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  DEFAULT_DEFERRAL_DELAYS,
  DEFAULT_RETRY_DELAYS,
  deferralDelaysSchema,
  delayAfterAttempt,
  formatDelay,
  MAX_HOLD_MS,
  nextAttemptAfter,
  retryAfterMsOf,
  retryScheduleSchema,
} from './schedule.ts';

describe('retry schedule', () => {
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
      ...[
        '',
        ' ',
        '5',
        '5s,',
        ',5s',
        '5d',
        '-5s',
        '1.5s',
        '5 s',
        '5S',
        '1e3s',
        '0s',
        '9ms',
        '169h',
      ],
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
});

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

const NOW_MS = Date.UTC(2026, 10, 22, 12, 0, 0);
const ask = (value: string, key = 'retry-after'): number | null =>
  retryAfterMsOf(
    [
      { key: 'date', value: 'now' },
      { key, value },
    ],
    NOW_MS,
  );

describe('Retry-After', () => {
  test('is read as seconds', () => {
    expect(ask('120')).toBe(120_000);
    expect(ask(' 0 ')).toBe(0);
    expect(ask('7', 'Retry-After')).toBe(7_000);
  });

  test.each([
    ['the form of today', 'Sun, 22 Nov 2026 12:01:30 GMT', 90_000],
    ['that form, in the past', 'Sun, 22 Nov 2026 11:00:00 GMT', 0],
    ['the form of RFC 850', 'Sunday, 22-Nov-26 12:01:30 GMT', 90_000],
    [
      'the form of RFC 850, on the longest of weekdays',
      'Wednesday, 25-Nov-26 12:00:00 GMT',
      MAX_HOLD_MS,
    ],
    ['the form of asctime', 'Sun Nov 22 12:01:30 2026', 90_000],
    ['the form of asctime, in the first days of a month', 'Tue Dec  1 00:00:00 2026', MAX_HOLD_MS],
    ['a leap second', 'Sun, 22 Nov 2026 12:00:60 GMT', 60_000],
    ['a day of one digit', 'Wed, 2 Dec 2026 12:00:00 GMT', MAX_HOLD_MS],
  ])('is read as an HTTP date in UTC: %s', (_what, value, waitMs) => {
    expect(ask(value)).toBe(waitMs);
  });

  test('has years of two digits up to 50 years ahead, and others in the past', () => {
    expect(ask('Sunday, 22-Nov-76 12:00:00 GMT')).toBe(MAX_HOLD_MS);
    expect(ask('Tuesday, 22-Nov-77 12:00:00 GMT')).toBe(0);
    const endOfCenturyMs = Date.UTC(2099, 11, 31, 23, 59, 0);
    const value = 'Friday, 01-Jan-00 00:00:00 GMT';
    expect(retryAfterMsOf([{ key: 'retry-after', value }], endOfCenturyMs)).toBe(60_000);
  });

  test.each([
    'Mon, 31 Feb 2027 12:00:00 GMT',
    'Sun, 22 Nov 2026 24:00:00 GMT',
    'Sun, 22 Nov 2026 12:60:00 GMT',
    'Sun, 22 Nox 2026 12:00:00 GMT',
    'Sun, 22 Nov 2026 13:00:00',
    'Sun, 22 Nov 2026 13:00:00 PST',
    'Sunday, 22-Nov-2026 13:00:00 GMT',
    'Sun Nov 22 13:00:00 2026 GMT',
    'November 22, 2026 13:00',
    '2026-11-22',
  ])('says nothing when it is no HTTP date: %s', (value) => {
    expect(ask(value)).toBeNull();
  });

  test('holds an endpoint for an hour at most', () => {
    expect(ask('86400')).toBe(MAX_HOLD_MS);
    for (const digits of [10, 11, 400]) expect(ask('9'.repeat(digits))).toBe(MAX_HOLD_MS);
    expect(ask('Mon, 01 Jan 2035 00:00:00 GMT')).toBe(MAX_HOLD_MS);
  });

  test('says nothing when it is absent or cannot be read', () => {
    expect(retryAfterMsOf([], NOW_MS)).toBeNull();
    for (const value of ['', 'soon', '-', 'NaN']) expect(ask(value)).toBeNull();
  });

  test('says nothing when it is a number that is no count of seconds', () => {
    for (const value of ['-5', '1.5', '+5', '-0']) expect(ask(value)).toBeNull();
  });
});

describe('deferral delays', () => {
  const MINUTE_MS = 60_000;
  const HOUR_MS = 3_600_000;

  function refusalsOf(text: string): string[] {
    return deferralDelaysSchema.safeParse(text).error?.issues.map(({ message }) => message) ?? [];
  }

  describe('the delays of deferrals', () => {
    test('go by default from one second to twelve hours', () => {
      expect(deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS)).toEqual([
        ...[1_000, 5_000, 15_000, MINUTE_MS],
        ...[5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 12 * HOUR_MS],
      ]);
    });

    test('rise by a factor of six at most, so that a backlog does not come back in one wave', () => {
      const delaysMs = deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS);
      const ratios = delaysMs.slice(1).map((delayMs, index) => delayMs / (delaysMs[index] ?? NaN));
      expect(Math.max(...ratios)).toBeLessThanOrEqual(6);
    });

    test('may be one alone', () => {
      expect(deferralDelaysSchema.parse('1m')).toEqual([MINUTE_MS]);
    });

    test.each(['30s', '1s,5s,59s'])(
      'are refused when far turns would come back too often: %s',
      (text) => {
        expect(refusalsOf(text)).toEqual([
          'the last delay must be 1m or longer: an attempt that is reserved for later is read and written again after each delay',
        ]);
      },
    );

    test.each([
      ['1s,5s,5s', 3],
      ['1s,1000ms', 2],
      ['15s,1s,5m', 2],
      ['1s,5m,5s,1m', 3],
    ])('are refused when they do not rise: %s', (text, number) => {
      expect(refusalsOf(text)).toEqual([
        `each delay must be longer than the one before it; number ${number} is not`,
      ]);
    });

    test.each([
      '',
      '1s,soon',
      '1s,,5s',
      '5s,1s,hush',
      '169h',
      Array<string>(21).fill('1s').join(','),
    ])('are refused when one of them is no delay, or they are too many: %j', (text) => {
      const [refusal, ...others] = refusalsOf(text);
      expect(refusal).toMatch(/^must be 1 to 20 delays from 10ms to 168h, .* such as 1s,5s,15s/);
      expect(others).toEqual([]);
    });
  });
});

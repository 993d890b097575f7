import { describe, expect, test } from '@jest/globals';
import { MAX_HOLD_MS, retryAfterMsOf } from './retry-after.ts';

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

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

  test('is read as an HTTP date, which may be over', () => {
    expect(ask('Sun, 22 Nov 2026 12:01:30 GMT')).toBe(90_000);
    expect(ask('Sun, 22 Nov 2026 11:00:00 GMT')).toBe(0);
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

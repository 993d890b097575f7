import { beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createRateCounts, WINDOW_MS, type RateCounts } from './rate-limit-counts.ts';

/** A whole minute, far from 1970. */
const START_MS = 29_000_000 * WINDOW_MS;

let nowMs = START_MS;
const countsOf = (limit: number, maxKeys = 100): RateCounts =>
  createRateCounts({ limit, maxKeys, nowMs: () => nowMs });

function takeMany(counts: RateCounts, times: number, key = 'a'): number {
  const allowed = Array.from({ length: times }, () => counts.take(key).isAllowed);
  return allowed.filter(Boolean).length;
}

beforeEach(() => {
  nowMs = START_MS;
});

describe('a limit', () => {
  test('allows each key as many as it says, and returns how many are left', () => {
    const counts = countsOf(3);
    const taken = [counts.take('a'), counts.take('a'), counts.take('a'), counts.take('a')];
    expect(taken.map(({ isAllowed }) => isAllowed)).toEqual([true, true, true, false]);
    expect(taken.map(({ remaining }) => remaining)).toEqual([2, 1, 0, 0]);
    expect(counts.take('b')).toEqual({ isAllowed: true, limit: 3, remaining: 2, resetMs: 60_000 });
  });

  test('slides: after half a minute, half of the previous minute still counts', () => {
    const counts = countsOf(100);
    takeMany(counts, 100);
    nowMs += 1.5 * WINDOW_MS;
    expect(takeMany(counts, 100)).toBe(50);
  });

  test('starts from zero after two minutes, and after a jump of the clock', () => {
    const counts = countsOf(10);
    takeMany(counts, 10);
    nowMs += 2 * WINDOW_MS;
    expect(takeMany(counts, 20)).toBe(10);
    nowMs -= 60 * WINDOW_MS;
    expect(takeMany(counts, 20)).toBe(10);
  });

  test('does not refuse a client for longer because it keeps sending', () => {
    const counts = countsOf(10);
    takeMany(counts, 1_000);
    nowMs += 2 * WINDOW_MS - 1;
    expect(counts.take('a').isAllowed).toBe(true);
  });

  test('counts all that a request has, or none of it', () => {
    const counts = countsOf(10);
    counts.take('a');
    expect(counts.take('a', 6)).toMatchObject({ isAllowed: true, remaining: 3 });
    expect(counts.take('a', 4)).toMatchObject({ isAllowed: false, remaining: 0 });
    expect(counts.take('a', 3)).toMatchObject({ isAllowed: true, remaining: 0 });
    nowMs += 1.5 * WINDOW_MS;
    expect(counts.take('a', 6)).toMatchObject({ isAllowed: false, resetMs: 6_000 });
    nowMs += 6_000;
    expect(counts.take('a', 6).isAllowed).toBe(true);
  });

  test('allows more than it says to a request that nothing was counted before, and then nothing', () => {
    const counts = countsOf(10);
    counts.take('a');
    expect(counts.take('a', 999)).toMatchObject({ isAllowed: true, remaining: 0 });
    expect(counts.take('a').isAllowed).toBe(false);
    counts.take('b');
    counts.take('b');
    expect(counts.take('b', 999).isAllowed).toBe(false);
  });

  test('drops the least recently used key when there are too many', () => {
    const counts = countsOf(1, 2);
    counts.take('a');
    counts.take('b');
    counts.take('a');
    counts.take('c');
    expect(counts.take('a').isAllowed).toBe(false);
    expect(counts.take('b').isAllowed).toBe(true);
  });
});

/** Steps of time, each followed by one request. */
const arrivals = fc.record({
  limit: fc.integer({ min: 1, max: 50 }),
  waitsMs: fc.array(fc.integer({ min: 0, max: 10_000 }), { maxLength: 300 }),
});

describe('whatever arrives when', () => {
  test('no fixed minute has more than the limit', () => {
    fc.assert(
      fc.property(arrivals, ({ limit, waitsMs }) => {
        nowMs = START_MS;
        const counts = countsOf(limit);
        const allowed = new Map<number, number>();
        for (const waitMs of waitsMs) {
          nowMs += waitMs;
          if (!counts.take('a').isAllowed) continue;
          const minute = Math.floor(nowMs / WINDOW_MS);
          allowed.set(minute, (allowed.get(minute) ?? 0) + 1);
        }
        expect(Math.max(0, ...allowed.values())).toBeLessThanOrEqual(limit);
      }),
    );
  });

  test('a refusal names the first millisecond in which one is allowed again', () => {
    fc.assert(
      fc.property(arrivals, ({ limit, waitsMs }) => {
        nowMs = START_MS;
        const counts = countsOf(limit);
        for (const waitMs of waitsMs) {
          nowMs += waitMs;
          const { isAllowed, resetMs } = counts.take('a');
          if (isAllowed) continue;
          const refusedAtMs = nowMs;
          nowMs = refusedAtMs + resetMs - 1;
          expect(counts.take('a').isAllowed).toBe(false);
          nowMs = refusedAtMs + resetMs;
          expect(counts.take('a').isAllowed).toBe(true);
        }
      }),
    );
  });

  test('requests are allowed, as many as were said to remain', () => {
    fc.assert(
      fc.property(arrivals, ({ limit, waitsMs }) => {
        nowMs = START_MS;
        const counts = countsOf(limit);
        for (const waitMs of waitsMs) {
          nowMs += waitMs;
          counts.take('a');
        }
        nowMs += 7;
        const { isAllowed, remaining } = counts.take('a');
        expect(takeMany(counts, limit + 1)).toBe(isAllowed ? remaining : 0);
      }),
    );
  });
});

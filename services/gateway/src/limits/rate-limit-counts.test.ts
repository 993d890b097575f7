import { beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  createRateCounts,
  WINDOW_MS,
  type Increment,
  type RateCounts,
} from './rate-limit-counts.ts';

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

describe('sharing', () => {
  /** What all processes have shared, as Redis would add it up. */
  let shared: Map<string, number>;
  const add = (increments: readonly Increment[]) => {
    for (const { key, minute, added } of increments) {
      shared.set(`${key}:${minute}`, (shared.get(`${key}:${minute}`) ?? 0) + added);
    }
    const totalOf = (key: string, minute: number) => shared.get(`${key}:${minute}`) ?? 0;
    return Promise.resolve(
      increments.map(({ key, minute }) => ({
        current: totalOf(key, minute),
        previous: totalOf(key, minute - 1),
      })),
    );
  };
  const away = () => Promise.reject(new Error('Redis is away'));

  beforeEach(() => {
    shared = new Map();
  });

  test('makes one limit of two processes', async () => {
    const [one, two] = [countsOf(10), countsOf(10)];
    takeMany(one, 7);
    await one.share(add);
    takeMany(two, 1);
    await two.share(add);
    expect(takeMany(two, 10)).toBe(2);
  });

  test('shares each request once, including those that came while sharing', async () => {
    const counts = countsOf(10);
    takeMany(counts, 2);
    await counts.share((increments) => {
      takeMany(counts, 3);
      return add(increments);
    });
    expect(takeMany(counts, 10)).toBe(5);
    await counts.share(add);
    await counts.share(add);
    expect([...shared.values()]).toEqual([10]);
  });

  test('counts alone while it fails, and catches up afterwards', async () => {
    const counts = countsOf(10);
    takeMany(counts, 4);
    await counts.share(away);
    expect(takeMany(counts, 20)).toBe(6);
    await counts.share(away);
    await counts.share(add);
    expect([...shared.values()]).toEqual([10]);
  });

  test('counts alone only the keys that could not be added, and shares the others once', async () => {
    const counts = countsOf(10);
    takeMany(counts, 4, 'a');
    takeMany(counts, 4, 'b');
    const withoutNodeOfA = async (increments: readonly Increment[]) => {
      const [totals] = await add(increments.filter(({ key }) => key === 'b'));
      return increments.map(({ key }) => (key === 'b' ? (totals ?? null) : null));
    };
    await counts.share(withoutNodeOfA);
    await counts.share(withoutNodeOfA);
    expect([...shared.values()]).toEqual([4]);
    await counts.share(add);
    expect([...shared.values()]).toEqual([4, 4]);
  });

  test('resets nothing when the totals were lost', async () => {
    const counts = countsOf(10);
    takeMany(counts, 10);
    await counts.share(add);
    shared.clear();
    nowMs += WINDOW_MS;
    expect(counts.take('a').isAllowed).toBe(false);
    nowMs += WINDOW_MS / 10;
    takeMany(counts, 1);
    await counts.share(add);
    expect(takeMany(counts, 10)).toBe(0);
  });

  test('includes the previous minute of the others', async () => {
    const [one, two] = [countsOf(10), countsOf(10)];
    takeMany(one, 10);
    await one.share(add);
    nowMs += WINDOW_MS + WINDOW_MS / 2;
    takeMany(two, 1);
    await two.share(add);
    expect(takeMany(two, 10)).toBe(4);
  });

  test('ignores totals of a minute that has ended in between', async () => {
    const counts = countsOf(10);
    takeMany(counts, 10);
    await counts.share((increments) => {
      nowMs += 2 * WINDOW_MS;
      takeMany(counts, 1);
      return add(increments);
    });
    expect(takeMany(counts, 20)).toBe(9);
  });

  test('starts at a thousandth of the limit, and then includes all', async () => {
    const counts = countsOf(300_000);
    takeMany(counts, 299);
    await counts.share(add);
    expect(shared.size).toBe(0);
    takeMany(counts, 1);
    await counts.share(add);
    expect([...shared.values()]).toEqual([300]);
  });

  test('includes a hundred keys per round, and the rest in the next', async () => {
    const counts = countsOf(5, 1_000);
    for (let n = 0; n < 150; n += 1) counts.take(`key ${n}`);
    await counts.share(add);
    expect(shared.size).toBe(100);
    await counts.share(add);
    expect(shared.size).toBe(150);
  });
});

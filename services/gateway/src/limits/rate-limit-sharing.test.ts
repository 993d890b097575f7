import { beforeEach, describe, expect, test } from '@jest/globals';
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

import { beforeEach, describe, expect, test } from '@jest/globals';
import { createRateCounts, WINDOW_MS, type News, type RateCounts } from './rate-limit-counts.ts';

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
  /** What all processes told, as Redis would add it up. */
  let told: Map<string, number>;
  const add = (news: readonly News[]) => {
    for (const { key, minute, added } of news) {
      told.set(`${key}:${minute}`, (told.get(`${key}:${minute}`) ?? 0) + added);
    }
    const totalOf = (key: string, minute: number) => told.get(`${key}:${minute}`) ?? 0;
    return Promise.resolve(
      news.map(({ key, minute }) => ({
        current: totalOf(key, minute),
        previous: totalOf(key, minute - 1),
      })),
    );
  };
  const away = () => Promise.reject(new Error('Redis is away'));

  beforeEach(() => {
    told = new Map();
  });

  test('makes one limit out of two processes', async () => {
    const [one, two] = [countsOf(10), countsOf(10)];
    takeMany(one, 7);
    await one.share(add);
    takeMany(two, 1);
    await two.share(add);
    expect(takeMany(two, 10)).toBe(2);
  });

  test('tells each request once, also those that came while telling', async () => {
    const counts = countsOf(10);
    takeMany(counts, 2);
    await counts.share((news) => {
      takeMany(counts, 3);
      return add(news);
    });
    expect(takeMany(counts, 10)).toBe(5);
    await counts.share(add);
    await counts.share(add);
    expect([...told.values()]).toEqual([10]);
  });

  test('goes on alone while it cannot, and catches up after', async () => {
    const counts = countsOf(10);
    takeMany(counts, 4);
    await counts.share(away);
    expect(takeMany(counts, 20)).toBe(6);
    await counts.share(away);
    await counts.share(add);
    expect([...told.values()]).toEqual([10]);
  });

  test('takes nothing back when the totals were lost', async () => {
    const counts = countsOf(10);
    takeMany(counts, 10);
    await counts.share(add);
    told.clear();
    nowMs += WINDOW_MS;
    expect(counts.take('a').isAllowed).toBe(false);
    nowMs += WINDOW_MS / 10;
    takeMany(counts, 1);
    await counts.share(add);
    expect(takeMany(counts, 10)).toBe(0);
  });

  test('learns of the previous minute from the others', async () => {
    const [one, two] = [countsOf(10), countsOf(10)];
    takeMany(one, 10);
    await one.share(add);
    nowMs += WINDOW_MS + WINDOW_MS / 2;
    takeMany(two, 1);
    await two.share(add);
    expect(takeMany(two, 10)).toBe(4);
  });

  test('ignores an answer about a minute that has ended meanwhile', async () => {
    const counts = countsOf(10);
    takeMany(counts, 10);
    await counts.share((news) => {
      nowMs += 2 * WINDOW_MS;
      takeMany(counts, 1);
      return add(news);
    });
    expect(takeMany(counts, 20)).toBe(9);
  });

  test('is not worth a word before a thousandth of the limit, and then tells all', async () => {
    const counts = countsOf(300_000);
    takeMany(counts, 299);
    await counts.share(add);
    expect(told.size).toBe(0);
    takeMany(counts, 1);
    await counts.share(add);
    expect([...told.values()]).toEqual([300]);
  });

  test('tells a hundred keys a round, and the rest in the next', async () => {
    const counts = countsOf(5, 1_000);
    for (let n = 0; n < 150; n += 1) counts.take(`key ${n}`);
    await counts.share(add);
    expect(told.size).toBe(100);
    await counts.share(add);
    expect(told.size).toBe(150);
  });
});

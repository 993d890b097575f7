import { expect, test } from '@jest/globals';
import type { mongo } from 'mongoose';
import { countUpTo, readAll, readUpTo } from './read-days.ts';

const DAYS = Array.from({ length: 32 }, (_, n) => n);
const collections = DAYS.map((n) => ({ collectionName: String(n) }) as mongo.Collection);

/** Counts as many in each day as `counts` says, and notes what is asked. */
function openCounts(counts: readonly number[]) {
  const asked: [number, number][] = [];
  const count = (documents: mongo.Collection, left: number): Promise<number> => {
    const n = Number(documents.collectionName);
    asked.push([n, left]);
    return Promise.resolve(Math.min(left, counts[n] ?? 0));
  };
  return { asked, count };
}

test('a count ends with the days in which it reaches its limit', async () => {
  const { asked, count } = openCounts([0, 0, 3, 0, 4, 4, 4, 4]);
  const counted = await countUpTo(collections, 10, count);
  expect(counted).toEqual({ sum: 10, first: collections[2] });
  expect(asked).toEqual([...[0, 1, 2, 3].map((n) => [n, 10]), ...[4, 5, 6, 7].map((n) => [n, 7])]);
});

test('a count of nothing has looked into every day and found no first one', async () => {
  const { asked, count } = openCounts([]);
  expect(await countUpTo(collections, 10, count)).toEqual({ sum: 0, first: null });
  expect(asked).toHaveLength(32);
});

test('a read of all uses few connections at once', async () => {
  let [running, most] = [0, 0];
  const found = await readAll(DAYS, async (n) => {
    most = Math.max(most, (running += 1));
    await Promise.resolve();
    running -= 1;
    return -n;
  });
  expect(found).toEqual(DAYS.map((n) => -n));
  expect(most).toBe(4);
});

/** Finds as many in each day as `counts` says, each named by its day, and notes what is asked. */
function openFinds(counts: readonly number[]) {
  const { asked, count } = openCounts(counts);
  const find = async (documents: mongo.Collection, left: number): Promise<string[]> => {
    const found = await count(documents, left);
    return Array.from({ length: found }, () => documents.collectionName);
  };
  return { asked, find };
}

test('a read that the first days fill looks into no other', async () => {
  const { asked, find } = openFinds([0, 9, 9]);
  expect(await readUpTo(collections, 5, find)).toEqual(['1', '1', '1', '1', '1']);
  expect(asked).toEqual([
    [0, 5],
    [1, 5],
  ]);
});

test('a read keeps the order of the days and returns no more than its limit', async () => {
  const { asked, find } = openFinds([1, 1, 1, 9, 9, 9, 9]);
  expect(await readUpTo(collections, 5, find)).toEqual(['0', '1', '2', '3', '3']);
  expect(asked.slice(2)).toEqual([2, 3, 4, 5].map((n) => [n, 3]));
});

test('a read that finds little looks into every day, at most four at once', async () => {
  let [running, most] = [0, 0];
  const found = await readUpTo(collections, 5, async ({ collectionName }) => {
    most = Math.max(most, (running += 1));
    await Promise.resolve();
    running -= 1;
    return collectionName === '31' ? ['last'] : [];
  });
  expect(found).toEqual(['last']);
  expect(most).toBe(4);
});

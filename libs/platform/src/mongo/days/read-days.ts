import type { mongo } from 'mongoose';
import type { DailyCollection } from './daily-collection.ts';

type Read<Document extends mongo.Document, Found, Input> = (
  documents: mongo.Collection<Document>,
  input: Input,
) => Promise<Found[]>;

/** Reads the documents of these ids from their days. They come in no order. */
export async function readByIds<Document extends mongo.Document, Found>(
  daily: DailyCollection<Document>,
  ids: readonly string[],
  read: Read<Document, Found, string[]>,
): Promise<Found[]> {
  const groups = daily.group(ids, (id) => id);
  return (
    await Promise.all(groups.map(({ documents, items }) => read(documents, [...items])))
  ).flat();
}

/**
 * Reads the collections in order until `limit` are found, a few at once. `read` gets how many are left to find.
 * Returns at most `limit`.
 */
export async function readUpTo<Document extends mongo.Document, Found>(
  collections: readonly mongo.Collection<Document>[],
  limit: number,
  read: Read<Document, Found, number>,
): Promise<Found[]> {
  const found: Found[] = [];
  // For MongoDB, a limit of 0 is none.
  if (limit === 0) return found;
  const readLeft = (documents: mongo.Collection<Document>): Promise<Found[]> =>
    read(documents, limit - found.length);
  for await (const some of readInOrder(collections, readLeft)) {
    found.push(...some);
    if (found.length >= limit) break;
  }
  return found.slice(0, limit);
}

/** Connections that one read may use at once; a pool has 20. */
const AT_ONCE = 4;

/** Today and tomorrow: the clock that made an id may be ahead. Most lists are full after these. */
const FIRST_AT_ONCE = 2;

/**
 * Yields the result of each read, in order. The first two run at once, then four at a time: a list that its newest days
 * do not fill reads 32 days in nine waits.
 */
export async function* readInOrder<From, Result>(
  all: readonly From[],
  read: (from: From) => Promise<Result>,
): AsyncGenerator<Result> {
  let size = FIRST_AT_ONCE;
  for (let from = 0; from < all.length; from += size, size = AT_ONCE) {
    yield* await Promise.all(all.slice(from, from + size).map(read));
  }
}

/** Reads all of them, such as collections, a few at once. The results are in the same order. */
export function readAll<From, Found>(
  all: readonly From[],
  read: (from: From) => Promise<Found>,
): Promise<Found[]> {
  return Array.fromAsync(readInOrder(all, read));
}

interface Counted<Document extends mongo.Document> {
  /** The sum, at most the limit. */
  sum: number;
  /** The first collection in which something was counted. */
  first: mongo.Collection<Document> | null;
}

/** Counts in the collections, a few at once, until `limit` is reached. `count` gets how many are left to count. */
export async function countUpTo<Document extends mongo.Document>(
  collections: readonly mongo.Collection<Document>[],
  limit: number,
  count: (documents: mongo.Collection<Document>, left: number) => Promise<number>,
): Promise<Counted<Document>> {
  const counted: Counted<Document> = { sum: 0, first: null };
  for (let from = 0; from < collections.length && counted.sum < limit; from += AT_ONCE) {
    const some = collections.slice(from, from + AT_ONCE);
    const left = limit - counted.sum;
    const counts = await Promise.all(some.map((documents) => count(documents, left)));
    counted.first ??= some.find((_, index) => counts[index] !== 0) ?? null;
    counted.sum = Math.min(limit, counted.sum + counts.reduce((sum, each) => sum + each, 0));
  }
  return counted;
}

/** Writes the items of each day to its collection. Returns the results, the oldest day first. */
export async function writeByDays<Document extends mongo.Document, Item, Result>(
  daily: DailyCollection<Document>,
  items: readonly Item[],
  idOf: (item: Item) => string,
  write: (documents: mongo.Collection<Document>, items: readonly Item[]) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const group of daily.group(items, idOf)) {
    results.push(await write(group.documents, group.items));
  }
  return results;
}

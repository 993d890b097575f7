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

/** Reads one collection after the other until `limit` are found. `read` is told how many are left to find. */
export async function readUpTo<Document extends mongo.Document, Found>(
  collections: readonly mongo.Collection<Document>[],
  limit: number,
  read: Read<Document, Found, number>,
): Promise<Found[]> {
  const found: Found[] = [];
  for (const documents of collections) {
    if (found.length >= limit) break;
    found.push(...(await read(documents, limit - found.length)));
  }
  return found;
}

/** Connections that one read may use at once; a pool has 20. */
const AT_ONCE = 4;

/** Reads every collection, a few at once. The results are in the order of the collections. */
export async function readAll<Document extends mongo.Document, Found>(
  collections: readonly mongo.Collection<Document>[],
  read: (documents: mongo.Collection<Document>) => Promise<Found>,
): Promise<Found[]> {
  const found: Found[] = [];
  for (let from = 0; from < collections.length; from += AT_ONCE) {
    found.push(...(await Promise.all(collections.slice(from, from + AT_ONCE).map(read))));
  }
  return found;
}

/** Writes to each day what belongs to it. Returns the results, that of the oldest day first. */
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

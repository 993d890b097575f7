import type { DailyCollection } from '@posthorn/platform/mongo/days/daily-collection.ts';
import { DAY_KINDS, dayDatabaseName } from '@posthorn/platform/mongo/days/days.ts';
import type { mongo } from 'mongoose';

/**
 * Returns every document by the name of its collection. Those of all days are under `messages` and `deliveries`, with
 * those of before.
 */
export async function readEverything(db: mongo.Db): Promise<Record<string, object[]>> {
  const found = await readDatabase(db);
  for (const kind of DAY_KINDS) {
    const days = await readDatabase(db.client.db(dayDatabaseName(db.databaseName, kind)));
    found[kind] = [...(found[kind] ?? []), ...Object.values(days).flat()];
  }
  return found;
}

async function readDatabase(db: mongo.Db): Promise<Record<string, object[]>> {
  const collections = await db.listCollections({}, { nameOnly: true }).toArray();
  const entries = collections.map(
    async ({ name }) => [name, await db.collection(name).find({}).toArray()] as const,
  );
  return Object.fromEntries<object[]>(await Promise.all(entries));
}

/** Counts in all days. */
export async function countIn<Document extends mongo.Document>(
  daily: DailyCollection<Document>,
  filter: mongo.Filter<Document>,
): Promise<number> {
  const counts = daily.within({}).map((documents) => documents.countDocuments(filter));
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

/** The first one of the oldest day that has one. */
export async function findIn<Document extends mongo.Document>(
  daily: DailyCollection<Document>,
  filter: mongo.Filter<Document>,
): Promise<mongo.WithId<Document> | null> {
  for (const documents of daily.within({})) {
    const found = await documents.findOne(filter);
    if (found) return found;
  }
  return null;
}

/** Inserts each into its day. */
export async function insertIn<Document extends mongo.Document & { _id: string }>(
  daily: DailyCollection<Document>,
  all: readonly Document[],
): Promise<void> {
  for (const { documents, items } of daily.group(all, ({ _id }) => _id)) {
    const some = items as readonly mongo.OptionalUnlessRequiredId<Document>[];
    await documents.insertMany(some, { ordered: false });
  }
}

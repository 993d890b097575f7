import { collection, type DocumentOf } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { createIndexes } from '@posthorn/platform/mongo/create-indexes.ts';
import type { DailyCollection } from '@posthorn/platform/mongo/days/daily-collection.ts';
import { DAY_INDEXES } from '@posthorn/platform/mongo/days/day-collections.ts';
import {
  DAY_KINDS,
  dayDatabaseName,
  type Database,
  type DayKind,
} from '@posthorn/platform/mongo/days/days.ts';
import { createNamespace } from '../process/namespace.ts';

export interface ScratchDatabase {
  db: Database;
  /** Reads the layout again, after a change. */
  readLayout: () => Promise<void>;
  drop: () => Promise<void>;
}

/**
 * Creates a database with every collection and index; `drop` removes it. All messages are in the one collection
 * `messages` and all deliveries in `deliveries`, so that tests may choose ids that spell no time.
 */
export async function openScratchDatabase(): Promise<ScratchDatabase> {
  const { db, readLayout, drop } = await openScratchDays();
  for (const kind of DAY_KINDS) {
    const indexes = DAY_INDEXES[kind].map(({ key, options }) => ({ ...options, key }));
    if (indexes.length > 0) await db.collection(kind).createIndexes(indexes);
  }
  const [messages, deliveries] = [undivided(db, 'messages'), undivided(db, 'deliveries')];
  return {
    db: Object.assign(db, { days: { ...db.days, messages, deliveries } }),
    readLayout,
    drop,
  };
}

function undivided<Name extends 'messages' | 'deliveries'>(
  db: Database,
  name: Name,
): DailyCollection<DocumentOf[Name]> {
  const documents = collection(db, name);
  return {
    of: () => documents,
    group: (items) => (items.length > 0 ? [{ documents, items }] : []),
    within: () => [documents],
    isKept: () => true,
    kept: ({ fromId = '', beforeId }) => ({ fromId, beforeId }),
  };
}

/** The same with a collection for each day, of which today and the next three are there with their indexes. */
export async function openScratchDays(): Promise<ScratchDatabase> {
  const mongo = await connectMongo(createNamespace().MONGODB_URL, 'posthorn-test');
  await createIndexes(mongo.db, { days: 30, auditDays: 400 });
  await mongo.readLayout();
  const { client, databaseName } = mongo.db;
  const daysOf = (name: DayKind): string => dayDatabaseName(databaseName, name);
  return {
    db: mongo.db,
    readLayout: mongo.readLayout,
    drop: async () => {
      for (const name of [databaseName, ...DAY_KINDS.map(daysOf)]) {
        await client.db(name).dropDatabase();
      }
      await mongo.close();
    },
  };
}

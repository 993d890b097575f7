import type { mongo } from 'mongoose';
import { collection, type DocumentOf } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
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
 * Opens an empty database with every collection and index; after `drop` the next test file may get it. All messages are
 * in the one collection `messages` and all deliveries in `deliveries`, so that tests may choose ids that spell no time.
 */
export function openScratchDatabase(): Promise<ScratchDatabase> {
  let place = 0;
  while (openPlaces.has(place)) place += 1;
  openPlaces.add(place);
  // A worker of Jest runs one test file at a time.
  const name = `reused_${process.env.JEST_WORKER_ID ?? '1'}_${place}`;
  return openUndivided(name, async (mongo) => {
    await mongo.close();
    openPlaces.delete(place);
  });
}

/** The reused databases that this test file has open: their indexes take half a second of processor time to create. */
const openPlaces = new Set<number>();

/** The same for tests that change indexes, the layout of days or the profiler; `drop` removes it. */
export function openFreshDatabase(): Promise<ScratchDatabase> {
  return openUndivided(undefined, dropAll);
}

async function openUndivided(
  name: string | undefined,
  drop: (mongo: MongoConnection) => Promise<void>,
): Promise<ScratchDatabase> {
  const mongo = await openWithIndexes(name);
  const { db } = mongo;
  for (const kind of DAY_KINDS) {
    const indexes = DAY_INDEXES[kind].map(({ key, options }) => ({ ...options, key }));
    if (indexes.length > 0) await db.collection(kind).createIndexes(indexes);
  }
  if (name !== undefined) await emptyDatabase(db);
  const [messages, deliveries] = [undivided(db, 'messages'), undivided(db, 'deliveries')];
  return {
    db: Object.assign(db, { days: { ...db.days, messages, deliveries } }),
    readLayout: mongo.readLayout,
    drop: () => drop(mongo),
  };
}

/** Removes every document of a Posthorn, and keeps its collections with what the creation of indexes has noted. */
export async function emptyDatabase(db: mongo.Db): Promise<void> {
  const ofDays = DAY_KINDS.map((kind) => db.client.db(dayDatabaseName(db.databaseName, kind)));
  await Promise.all([db, ...ofDays].map(emptyCollections));
}

async function emptyCollections(db: mongo.Db): Promise<void> {
  const all = await db.listCollections({}, { nameOnly: true }).toArray();
  const emptied = all.filter(({ name }) => !/^(layout|migrations|system\..*)$/.test(name));
  // One after the other: 60 at once wait for the 20 connections of the pool, on a busy machine for longer than they may.
  for (const { name } of emptied) await db.collection(name).deleteMany({});
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
    notRemoved: () => ({ removeAt: { $not: { $lte: new Date(0) } } }),
    kept: ({ fromId = '', beforeId }) => ({ fromId, beforeId }),
  };
}

/** Creates a database with a collection for each day, of which today and the next three are there with their indexes. */
export async function openScratchDays(): Promise<ScratchDatabase> {
  const mongo = await openWithIndexes();
  return { db: mongo.db, readLayout: mongo.readLayout, drop: () => dropAll(mongo) };
}

async function openWithIndexes(name?: string): Promise<MongoConnection> {
  const url = new URL(createNamespace().MONGODB_URL);
  if (name !== undefined) url.pathname = `/${name}`;
  const mongo = await connectMongo(url.href, 'posthorn-test');
  await createIndexes(mongo.db, { days: 30, auditDays: 400 });
  await mongo.readLayout();
  return mongo;
}

async function dropAll(mongo: MongoConnection): Promise<void> {
  const { client, databaseName } = mongo.db;
  const daysOf = (kind: DayKind): string => dayDatabaseName(databaseName, kind);
  for (const name of [databaseName, ...DAY_KINDS.map(daysOf)]) {
    await client.db(name).dropDatabase();
  }
  await mongo.close();
}

import { dayName, dayNumberOfName } from '@posthorn/domain/ids/days.ts';
import type { mongo } from 'mongoose';
import { DAY_INDEXES } from './day-indexes.ts';
import { hasCode } from '../indexes/list-indexes.ts';
import { dayDatabaseName, type DayKind } from './days.ts';
import { readLayout, type StoredLayout } from './stored-layout.ts';

/** Makes and drops the collections of days, which have numbers: see the domain. */
export interface DayCollections {
  /** Null while it is not stored. */
  readLayout: () => Promise<StoredLayout | null>;
  /** The time of the database's clock, in milliseconds since 1970. */
  nowMs: () => Promise<number>;
  /** The days that have a collection, in ascending order. */
  list: (kind: DayKind) => Promise<number[]>;
  /**
   * Makes the collection, unless a write has made it, and every index that it lacks. Those of one collection are built
   * in one pass. May be repeated.
   */
  create: (kind: DayKind, day: number, layout: Pick<StoredLayout, 'isSharded'>) => Promise<void>;
  drop: (kind: DayKind, day: number) => Promise<void>;
}

/**
 * zstd takes less of the disk than snappy, the default of MongoDB (docs/scaling.md, Sizes). A collection
 * that a write has made has the default.
 */
const COMPRESSED = { storageEngine: { wiredTiger: { configString: 'block_compressor=zstd' } } };
const NAMESPACE_EXISTS = 48;

export function createDayCollections(db: mongo.Db): DayCollections {
  const databaseOf = (kind: DayKind): mongo.Db =>
    db.client.db(dayDatabaseName(db.databaseName, kind));
  return {
    readLayout: () => readLayout(db),
    async nowMs() {
      const { localTime } = (await db.command({ hello: 1 })) as { localTime: Date };
      return localTime.getTime();
    },
    async list(kind) {
      const found = await databaseOf(kind).listCollections({}, { nameOnly: true }).toArray();
      const days = found.map(({ name }) => dayNumberOfName(name));
      return days.filter((day) => day !== null).sort((a, b) => a - b);
    },
    async create(kind, day, { isSharded }) {
      const name = dayName(day);
      await databaseOf(kind)
        .createCollection(name, COMPRESSED)
        .catch((error: unknown) => {
          if (!hasCode(error, NAMESPACE_EXISTS)) throw error;
        });
      if (isSharded) {
        const place = `${databaseOf(kind).databaseName}.${name}`;
        await db.client.db('admin').command({ shardCollection: place, key: { _id: 'hashed' } });
      }
      await databaseOf(kind).collection(name).createIndexes(indexesOf(kind, isSharded));
    },
    async drop(kind, day) {
      await databaseOf(kind).dropCollection(dayName(day));
    },
  };
}

/** In a sharded collection only an index that begins with the shard key can be unique. Keys are claimed anyway. */
function indexesOf(kind: DayKind, isSharded: boolean): mongo.IndexDescription[] {
  return DAY_INDEXES[kind].map(({ key, options: { unique = false, ...options } = {} }) => ({
    ...options,
    ...(unique && !isSharded && { unique }),
    key,
  }));
}

import { dayName, dayNumberOfName } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { databaseClockMs } from './watch-clock.ts';
import { DAY_INDEXES } from './day-indexes.ts';
import { defaultName, type FoundIndex } from '../indexes/index-spec.ts';
import { hasCode, listIndexes } from '../indexes/list-indexes.ts';
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
    nowMs: () => databaseClockMs(db),
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
      const documents = databaseOf(kind).collection(name);
      if (isSharded && (await canBeSpread(documents))) {
        const place = `${databaseOf(kind).databaseName}.${name}`;
        await db.client.db('admin').command({ shardCollection: place, key: HASHED_ID });
      }
      await documents.createIndexes(indexesOf(kind, await listIndexes(databaseOf(kind), name)));
    },
    async drop(kind, day) {
      await databaseOf(kind).dropCollection(dayName(day));
    },
  };
}

/** MongoDB makes this index when it spreads a collection. */
const HASHED_ID = { _id: 'hashed' } as const;

/** A day with documents, such as one that a write has made, or with a unique index stays on one shard. */
async function canBeSpread(documents: mongo.Collection): Promise<boolean> {
  const first = await documents.findOne({}, { projection: { _id: 1 } });
  return first === null && !(await documents.indexes()).some(({ unique }) => unique === true);
}

/**
 * In a sharded collection only an index that begins with the shard key can be unique. So the collection decides, and
 * not what is asked of new ones now. Keys are claimed anyway.
 */
function indexesOf(kind: DayKind, found: readonly FoundIndex[]): mongo.IndexDescription[] {
  const named = new Map(found.map((index) => [defaultName(index.key), index]));
  const isSpread = named.has(defaultName(HASHED_ID));
  return DAY_INDEXES[kind].map(({ key, options: { unique: wanted = false, ...options } = {} }) => {
    const existing = named.get(defaultName(key));
    const unique = existing ? existing.unique === true : wanted && !isSpread;
    return { ...options, ...(unique && { unique }), key };
  });
}

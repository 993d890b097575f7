import { DAY_MS, dayName, dayNumberOf, dayNumberOfName } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { defaultName, type FoundIndex, hasCode, type IndexSpec, listIndexes } from '../indexes.ts';
import { DAY_KINDS, dayDatabaseName, type DayKind } from './days.ts';
import { readLayout, type StoredLayout, writeLayout, type WrittenLayout } from './layout.ts';
import { databaseClockMs } from '../database-time.ts';

/** Makes and drops the collections of days, which have numbers: see the domain. */
export interface DayCollections {
  /** Null before create-indexes has run. */
  readLayout: () => Promise<StoredLayout | null>;
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
      const indexes = indexesOf(kind, await listIndexes(databaseOf(kind), name));
      if (indexes.length > 0) await documents.createIndexes(indexes);
    },
    async drop(kind, day) {
      await databaseOf(kind).dropCollection(dayName(day));
    },
  };
}

type DayIndex = Omit<IndexSpec, 'collection'>;

/** With the status, so that waiting deliveries are counted without reading them. */
export const WAITING_KEY = { waiting: 1, companyId: 1, webhookId: 1, _id: 1, status: 1 } as const;

/** Removes documents with `retentionDays` at their end. Nothing else is in the index. */
const REMOVAL: DayIndex = {
  key: { removeAt: 1 },
  options: { expireAfterSeconds: 0, sparse: true },
};

const NOT_DELIVERED = { status: { $in: ['pending', 'exhausted', 'cancelled'] } };

/** Pending deliveries by why they wait and by time; without `waiting` those that are not to wait. */
export const DUE_KEY = { waiting: 1, nextAttemptAt: 1, updatedAt: 1 } as const;

/** Deliveries that ended without success, by why. */
export const BY_REASON_KEY = { companyId: 1, status: 1, reason: 1, messageId: 1, _id: 1 } as const;

/** The deliveries that wait for the time of their message. */
export const TIMED = { status: 'pending', waiting: 'time' } as const;
export const TIMED_OF_COMPANY_KEY = { companyId: 1, nextAttemptAt: 1 } as const;

/** The deliveries on hold whose message expires, by that time, and the same of each company. */
export const EXPIRING = { status: 'pending', waiting: 'hold' } as const;
export const EXPIRING_KEY = { expiresAt: 1 } as const;
export const EXPIRING_OF_COMPANY_KEY = { companyId: 1, expiresAt: 1 } as const;
const HAS_EXPIRY = { ...EXPIRING, expiresAt: { $exists: true } };

const STATES_CANCELLED = { partialFilterExpression: { disabledTargets: { $exists: true } } };
/** The pending deliveries of a sequence by position, those that only memory has excepted. */
export const POSITION_KEY = { webhookId: 1, orderingKey: 1, position: 1 } as const;

/** The indexes in the collection of each day. Claims of idempotency keys are found by their ids. */
export const DAY_INDEXES: Record<DayKind, readonly DayIndex[]> = {
  messages: [
    // Lists, newest first: messages of a company, of an app, to a webhook.
    { key: { companyId: 1, _id: 1 } },
    { key: { appId: 1, _id: 1 } },
    { key: { targets: 1, _id: 1 } },
    // The same of those that a webhook got by a replay; other messages are not in the index.
    {
      key: { addedTargets: 1, _id: 1 },
      options: { partialFilterExpression: { addedTargets: { $exists: true } } },
    },
    // Messages that state cancelled deliveries, because their webhooks were disabled at acceptance: by webhook, and of a
    // company; other messages are not in the indexes. The second one is descending: MongoDB names an index by its key.
    { key: { disabledTargets: 1, _id: 1 }, options: STATES_CANCELLED },
    { key: { companyId: 1, _id: -1 }, options: STATES_CANCELLED },
    // The same by what the client gave to find them by; messages without it are not in the index.
    {
      key: { companyId: 1, tags: 1, _id: 1 },
      options: { partialFilterExpression: { tags: { $exists: true } } },
    },
    {
      key: { companyId: 1, externalId: 1, _id: 1 },
      options: { partialFilterExpression: { externalId: { $exists: true } } },
    },
    // One message for each idempotency key; messages without a key are not in the index.
    {
      key: { companyId: 1, 'idempotency.key': 1 },
      options: {
        unique: true,
        partialFilterExpression: { 'idempotency.key': { $exists: true } },
      },
    },
    REMOVAL,
  ],
  deliveries: [
    // Failed and pending deliveries by webhook: resends, cancelling, health. Delivered ones, nearly all, are not in the
    // index.
    {
      key: { companyId: 1, webhookId: 1, status: 1, _id: 1 },
      options: { partialFilterExpression: NOT_DELIVERED },
    },
    // The same by message: the lists of deliveries by status, and of messages that failed. `_id` orders the deliveries of
    // one message, and there may be 10,000.
    {
      key: { companyId: 1, status: 1, messageId: 1, _id: 1 },
      options: { partialFilterExpression: NOT_DELIVERED },
    },
    // The same of those that ended without success, by why.
    {
      key: BY_REASON_KEY,
      options: { partialFilterExpression: { status: { $in: ['exhausted', 'cancelled'] } } },
    },
    // Overdue deliveries, for the sweep, which reads none of those that wait, and deliveries before the time of their
    // message, the next one first. A delivery that succeeds at once is never in the index.
    { key: DUE_KEY, options: { partialFilterExpression: { status: 'pending' } } },
    // Deliveries that wait while their webhook is on hold, by webhook and in order; all others are not in the index.
    {
      key: WAITING_KEY,
      options: { partialFilterExpression: { status: 'pending', waiting: { $exists: true } } },
    },
    // Deliveries before the time of their message, by company: when many are due, each company gets its share.
    { key: TIMED_OF_COMPANY_KEY, options: { partialFilterExpression: TIMED } },
    // Deliveries on hold whose message expires, by time and by company; all others are not in the indexes.
    { key: EXPIRING_KEY, options: { partialFilterExpression: HAS_EXPIRY } },
    { key: EXPIRING_OF_COMPANY_KEY, options: { partialFilterExpression: HAS_EXPIRY } },
    // Pending deliveries with an ordering key that have left memory, in their order; empty while nobody uses such keys.
    {
      key: POSITION_KEY,
      options: {
        partialFilterExpression: { status: 'pending', position: { $exists: true } },
      },
    },
    REMOVAL,
  ],
  idempotencyKeys: [],
};

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

/**
 * Stores the layout. A fresh installation gets its first days before that: no process uses messages before it knows the
 * layout. When this is killed in between, it does the same again.
 */
export async function storeLayout(db: mongo.Db, layout: WrittenLayout): Promise<void> {
  const days = createDayCollections(db);
  const nowMs = await databaseClockMs(db);
  if (!(await readLayout(db))) {
    for (const day of daysToHave(nowMs)) {
      for (const kind of DAY_KINDS) await days.create(kind, day, layout);
    }
  }
  return writeLayout(db, layout, new Date(firstBeginMs(nowMs)));
}

/**
 * The day before: for gateways whose clock is behind. With an earlier begin, a list that does not fill its page would read
 * thirty days that cannot have anything.
 */
export function firstBeginMs(nowMs: number): number {
  return (dayNumberOf(nowMs) - 1) * DAY_MS;
}

/** So many days after today have a collection: days may be missing for as long, such as a weekend, before one is needed. */
export const DAYS_AHEAD = 3;

/** The numbers of the days that must have a collection at this time, in milliseconds since 1970. */
export function daysToHave(nowMs: number): number[] {
  const today = dayNumberOf(nowMs);
  return Array.from({ length: DAYS_AHEAD + 1 }, (_, ahead) => today + ahead);
}

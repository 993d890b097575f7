import type { mongo } from 'mongoose';
import { DAY_MS, dayName, dayNumberOf } from '@posthorn/domain/ids.ts';
import { collection } from '../collections.ts';
import type { DeliveryDocument, IdempotencyKeyDocument, MessageDocument } from '../documents.ts';
import { createDailyCollection, type DailyCollection, type DayClock } from './daily-collection.ts';
import type { StoredLayout } from './layout.ts';

/** The documents that expire with their day. */
export interface Days {
  messages: DailyCollection<MessageDocument>;
  deliveries: DailyCollection<DeliveryDocument>;
  idempotencyKeys: KeyDays;
  /** How long documents are kept, in milliseconds. */
  retentionMs: () => number;
  /** Returns true where new days are spread over shards: nothing but its claim refuses a second message with one key. */
  areSpread: () => boolean;
}

/** Claims of idempotency keys, by the day in which they were made: a number, by the database's clock. */
export interface KeyDays {
  of: (day: number) => mongo.Collection<IdempotencyKeyDocument>;
  /**
   * Every collection that may have claims, also when the database's clock was wrong by a day; that of creations too
   * (companies/creation-keys.ts).
   */
  all: () => mongo.Collection<IdempotencyKeyDocument>[];
}

export const DAY_KINDS = ['messages', 'deliveries', 'idempotencyKeys'] as const;
export type DayKind = (typeof DAY_KINDS)[number];

export const isDayKind = (name: string): name is DayKind => DAY_KINDS.some((kind) => kind === name);

/** The database of Posthorn, with its collections of days. */
export type Database = mongo.Db & { readonly days: Days };

/**
 * Claims of a day count until the end of the next one; they are kept for another day, for a database whose clock was
 * ahead.
 */
export const KEY_DAYS = 2;

/** How long documents are kept after the end of their day. */
export function dayRetentionMs(
  kind: DayKind,
  { retentionMs }: Pick<StoredLayout, 'retentionMs'>,
): number {
  return kind === 'idempotencyKeys' ? KEY_DAYS * DAY_MS : retentionMs;
}

/** Rights in MongoDB are for one collection or for a database, so that days of both kinds have one each. */
export function dayDatabaseName(database: string, name: DayKind): string {
  return `${database}_${name}`;
}

interface DaysDeps extends DayClock {
  layout: () => Omit<StoredLayout, 'isSharded'> & Partial<Pick<StoredLayout, 'isSharded'>>;
  /** How long MongoDB may work on a read; as long as it takes when it is left out. */
  maxReadMs?: number;
}

/** Returns the same database with its collections of days. */
export function withDays(
  all: mongo.Db,
  { layout, nowMs, earlierMs, maxReadMs }: DaysDeps,
): Database {
  const bounded = (each: mongo.Db): mongo.Db =>
    maxReadMs === undefined ? each : withReadTime(each, maxReadMs);
  const daily = (kind: DayKind) => ({
    days: bounded(all.client.db(dayDatabaseName(all.databaseName, kind))),
    layout,
    nowMs,
    earlierMs,
  });
  return Object.assign(bounded(all), {
    days: {
      messages: createDailyCollection<MessageDocument>(daily('messages')),
      deliveries: createDailyCollection<DeliveryDocument>(daily('deliveries')),
      idempotencyKeys: keyDaysIn(bounded(all), daily('idempotencyKeys')),
      retentionMs: () => layout().retentionMs,
      areSpread: () => layout().isSharded === true,
    },
  });
}

interface KeyDaysDeps extends Pick<DaysDeps, 'nowMs'> {
  days: mongo.Db;
}

function keyDaysIn(db: mongo.Db, { days, nowMs }: KeyDaysDeps): KeyDays {
  const of = (day: number) => days.collection<IdempotencyKeyDocument>(dayName(day));
  return {
    of,
    all() {
      const first = dayNumberOf(nowMs()) - KEY_DAYS - 2;
      const ofDays = Array.from({ length: KEY_DAYS + 5 }, (_, n) => of(first + n));
      return [collection(db, 'idempotencyKeys'), ...ofDays];
    },
  };
}

/**
 * Returns the same database, whose reads end in MongoDB when they have worked for so long: find, findOne, aggregate and
 * countDocuments. A read that is ended fails as if MongoDB were away. Without it, MongoDB goes on with reads that nobody
 * waits for, and a client that repeats its request adds to them. The driver's own `timeoutMS` is not used: it also counts
 * the time in which a long list waits for its client, and closes the connection.
 */
function withReadTime(db: mongo.Db, maxTimeMS: number): mongo.Db {
  const bounded = Object.create(db) as mongo.Db;
  bounded.collection = (name, options) =>
    boundedReads<never>(db.collection<never>(name, options), maxTimeMS) as never;
  return bounded;
}

function boundedReads<Document extends mongo.Document>(
  documents: mongo.Collection<Document>,
  maxTimeMS: number,
): mongo.Collection<Document> {
  // findOne and countDocuments of the driver call these two.
  const bounded = Object.create(documents) as mongo.Collection<Document>;
  bounded.find = (filter: mongo.Filter<Document> = {}, options: mongo.FindOptions = {}) =>
    documents.find<never>(filter, { maxTimeMS, ...options });
  bounded.aggregate = (pipeline?: mongo.Document[], options?: mongo.AggregateOptions) =>
    documents.aggregate<never>(pipeline, { maxTimeMS, ...options });
  return bounded;
}

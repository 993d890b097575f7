import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { DeliveryDocument, MessageDocument } from '../documents.ts';
import { createDailyCollection, type DailyCollection, type DayLayout } from './daily-collection.ts';

/** The documents that expire with their day. */
export interface Days {
  messages: DailyCollection<MessageDocument>;
  deliveries: DailyCollection<DeliveryDocument>;
  /** True once it is decided when days begin, minutes before they do. */
  areDecided: () => boolean;
}

export const DAY_KINDS = ['messages', 'deliveries'] as const;
export type DayKind = (typeof DAY_KINDS)[number];

/** The database of Posthorn. It knows where its messages and deliveries are. */
export type Database = mongo.Db & { readonly days: Days };

/** Everything is in the old collections. */
export const ALL_BEFORE: DayLayout = { beginMs: Infinity, retentionMs: Infinity };

/** Rights in MongoDB are for one collection or for a database, so that days of both kinds have one each. */
export function dayDatabaseName(database: string, name: DayKind): string {
  return `${database}_${name}`;
}

interface DaysDeps {
  layout: () => DayLayout;
  nowMs: () => number;
  /** How long MongoDB may work on a read; as long as it takes when it is left out. */
  maxReadMs?: number;
}

/** Returns the same database, which knows its days. */
export function withDays(all: mongo.Db, { layout, nowMs, maxReadMs }: DaysDeps): Database {
  const bounded = (each: mongo.Db): mongo.Db =>
    maxReadMs === undefined ? each : withReadTime(each, maxReadMs);
  const db = bounded(all);
  const daily = <Name extends DayKind>(name: Name) => ({
    before: collection(db, name),
    days: bounded(db.client.db(dayDatabaseName(db.databaseName, name))),
    layout,
    nowMs,
  });
  return Object.assign(db, {
    days: {
      messages: createDailyCollection(daily('messages')),
      deliveries: createDailyCollection(daily('deliveries')),
      areDecided: () => layout().beginMs < Infinity,
    },
  });
}

/**
 * Returns the same database, whose reads end in MongoDB when they have worked for so long: find, findOne, aggregate and
 * countDocuments. A read that is ended fails as if MongoDB were away. Without it, MongoDB goes on with what nobody waits
 * for, and a client that repeats its request adds to that. The driver's own `timeoutMS` is not used: it also counts the
 * time in which a long list waits for its client, and closes the connection.
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

import type { mongo } from 'mongoose';
import type { DeliveryDocument, MessageDocument } from '../documents.ts';
import { createDailyCollection, type DailyCollection, type DayLayout } from './daily-collection.ts';

/** The documents that expire with their day. */
export interface Days {
  messages: DailyCollection<MessageDocument>;
  deliveries: DailyCollection<DeliveryDocument>;
}

export const DAY_KINDS = ['messages', 'deliveries'] as const;
export type DayKind = (typeof DAY_KINDS)[number];

/** The database of Posthorn, with its collections of days. */
export type Database = mongo.Db & { readonly days: Days };

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

/** Returns the same database with its collections of days. */
export function withDays(all: mongo.Db, { layout, nowMs, maxReadMs }: DaysDeps): Database {
  const bounded = (each: mongo.Db): mongo.Db =>
    maxReadMs === undefined ? each : withReadTime(each, maxReadMs);
  const daily = (kind: DayKind) => ({
    days: bounded(all.client.db(dayDatabaseName(all.databaseName, kind))),
    layout,
    nowMs,
  });
  return Object.assign(bounded(all), {
    days: {
      messages: createDailyCollection<MessageDocument>(daily('messages')),
      deliveries: createDailyCollection<DeliveryDocument>(daily('deliveries')),
    },
  });
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

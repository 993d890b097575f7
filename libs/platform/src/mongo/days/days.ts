import type { mongo } from 'mongoose';
import { withReadTime } from './read-time.ts';
import { collection } from '../documents/collections.ts';
import type { DeliveryDocument, MessageDocument } from '../documents/documents.ts';
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

export interface DaysDeps {
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

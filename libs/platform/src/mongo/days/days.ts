import type { mongo } from 'mongoose';
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
}

/** Returns the same database, which knows its days from now on. */
export function withDays(db: mongo.Db, { layout, nowMs }: DaysDeps): Database {
  const daily = <Name extends DayKind>(name: Name) => ({
    before: collection(db, name),
    days: db.client.db(dayDatabaseName(db.databaseName, name)),
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

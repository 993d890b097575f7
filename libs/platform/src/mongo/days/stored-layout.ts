import { DAY_MS } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';
import type { DayLayout } from './daily-collection.ts';

const DAYS = { _id: 'days' } as const;

export interface StoredLayout extends DayLayout {
  /** Whether new days are spread over the shards of a cluster. */
  isSharded: boolean;
}

export interface WrittenLayout {
  retentionDays: number;
  isSharded: boolean;
}

/** Stores how messages and deliveries are kept, so that every process reads the same. `beginAt` is for a new layout. */
export async function writeLayout(
  db: mongo.Db,
  { retentionDays, isSharded }: WrittenLayout,
  beginAt: Date | null = null,
): Promise<void> {
  const fields = { $set: { retentionDays, isSharded }, $setOnInsert: beginAt ? { beginAt } : {} };
  await collection(db, 'layout').updateOne(DAYS, fields, { upsert: true });
}

/** Returns null where no version that writes this has run. */
export async function readLayout(db: mongo.Db): Promise<StoredLayout | null> {
  const stored = await collection(db, 'layout').findOne(DAYS);
  return (
    stored && {
      beginMs: stored.beginAt?.getTime() ?? Infinity,
      retentionMs: Math.round(stored.retentionDays * DAY_MS),
      isSharded: stored.isSharded === true,
    }
  );
}

import { DAY_MS } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { StoreUnavailableError } from '../../service/errors.ts';
import { collection } from '../collections.ts';
import type { DayLayout } from './daily-collection.ts';

export interface StoredLayout extends DayLayout {
  /** Whether new days are spread over the shards of a cluster. */
  isSharded: boolean;
}

export interface WrittenLayout {
  retentionDays: number;
  isSharded: boolean;
}

const DAYS = { _id: 'days' } as const;

/** Stores how the collections of days are kept, so that every process reads the same. A new layout begins at `beginAt`. */
export async function writeLayout(
  db: mongo.Db,
  { retentionDays, isSharded }: WrittenLayout,
  beginAt: Date,
): Promise<void> {
  const fields = {
    $set: { retentionDays, isSharded, beginAt: { $ifNull: ['$beginAt', beginAt] } },
  };
  await collection(db, 'layout').updateOne(DAYS, [fields], { upsert: true });
}

/** Returns null before create-indexes has run. */
export async function readLayout(db: mongo.Db): Promise<StoredLayout | null> {
  const stored = await collection(db, 'layout').findOne(DAYS);
  return (
    stored && {
      beginMs: stored.beginAt.getTime(),
      retentionMs: Math.round(stored.retentionDays * DAY_MS),
      isSharded: stored.isSharded === true,
    }
  );
}

/** The layout as it was last read. */
export interface FollowedLayout {
  /** Throws StoreUnavailableError before create-indexes has run. */
  layout: () => StoredLayout;
  /** Reads it now. */
  read: () => Promise<void>;
  stop: () => void;
}

const READ_EVERY_MS = 5_000;

/** Reads the layout again and again until `stop`: the retention may change. */
export async function followLayout(db: mongo.Db): Promise<FollowedLayout> {
  let known = await readLayout(db);
  const read = async (): Promise<void> => {
    known = await readLayout(db);
  };
  // A read that fails is repeated by the next one, and the retention that is known stays in use.
  const timer = setInterval(() => void read().catch(() => undefined), READ_EVERY_MS);
  timer.unref();
  return {
    layout() {
      if (known) return known;
      throw new StoreUnavailableError(
        'the collection layout is not in MongoDB yet: run deploy/setup/create-indexes.ts',
      );
    },
    read,
    stop() {
      clearInterval(timer);
    },
  };
}

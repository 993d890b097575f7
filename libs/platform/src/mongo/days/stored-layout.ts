import { DAY_MS } from '@posthorn/domain/ids/days.ts';
import { timeMsOf } from '@posthorn/domain/ids/ids.ts';
import type { mongo } from 'mongoose';
import { collection } from '../documents/collections.ts';
import type { DayLayout } from './daily-collection.ts';

const DAYS = { _id: 'days' } as const;
/** Every process asks every five seconds, and uses nothing when it could not ask for five minutes. */
const AHEAD_MS = 600_000;
/** Days begin after the newest id, so a clock further ahead would delay them for ever. */
const MOST_AHEAD_MS = 3_600_000;

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

/**
 * Decides that days begin in ten minutes, by the database's clock, unless it is decided. Returns when they begin, in
 * milliseconds since 1970. No process of a version that does not know of days may run: it would look for later messages
 * in the old collections. Throws when the newest message is of a clock that is more than an hour ahead.
 */
export async function beginDays(db: mongo.Db): Promise<number> {
  const decided = await readBegin(db);
  if (decided < Infinity) return decided;
  const { localTime } = (await db.command({ hello: 1 })) as { localTime: Date };
  const nowMs = localTime.getTime();
  // Ids never go back: those of a gateway whose clock is ahead are in the old collection up to then.
  const latestMs = Math.max(nowMs, await newestMs(db));
  if (latestMs - nowMs > MOST_AHEAD_MS) throw new Error(tooFarAhead(latestMs));
  const beginAt = new Date(latestMs + AHEAD_MS);
  const layout = collection(db, 'layout');
  await layout.updateOne({ ...DAYS, beginAt: { $exists: false } }, { $set: { beginAt } });
  return readBegin(db);
}

async function readBegin(db: mongo.Db): Promise<number> {
  const stored = await readLayout(db);
  if (!stored) throw new Error('Run deploy/setup/create-indexes.ts of this version first.');
  return stored.beginMs;
}

function tooFarAhead(latestMs: number): string {
  const at = new Date(latestMs).toISOString();
  return `The newest message is of ${at}, more than an hour ahead of the clock of MongoDB. Days would begin after it: correct the clock of the gateway that made it, and begin them when that time has come (docs/upgrade.md#days).`;
}

async function newestMs(db: mongo.Db): Promise<number> {
  const newest = { sort: { _id: -1 }, projection: { _id: 1 } } as const;
  const found = await collection(db, 'messages').findOne({}, newest);
  return found ? timeMsOf(found._id) : 0;
}

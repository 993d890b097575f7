import { DAY_MS } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { StoreUnavailableError } from '../../service/errors.ts';
import { collection } from '../collections.ts';
import type { DayLayout } from './daily-collection.ts';

/** What a process knows about where messages and deliveries are. */
export interface FollowedLayout {
  /** Throws StoreUnavailableError while that is not certain. */
  layout: () => DayLayout;
  /** Reads it now. */
  read: () => Promise<void>;
  stop: () => void;
}

/** In milliseconds; both clocks, because the monotonic one may stop while the machine sleeps. */
interface LayoutClocks {
  nowMs: () => number;
  monotonicMs: () => number;
}

const LOOK_EVERY_MS = 5_000;
/** Once days have begun only the retention can change. */
const BEGUN_EVERY_MS = 60_000;
/**
 * Days begin ten minutes after that was decided, so that every process knows of it long before. One that could not
 * ask for half of the time must not use the old collections any more.
 */
export const CERTAIN_FOR_MS = 300_000;

interface Known {
  layout: DayLayout | null;
  readAt: { nowMs: number; monotonicMs: number };
}

/** Asks for the layout again and again until `stop`. */
export async function followLayout(db: mongo.Db, clocks: LayoutClocks): Promise<FollowedLayout> {
  let known = await ask(db, clocks);
  let isReading = false;
  const read = async (): Promise<void> => {
    isReading = true;
    try {
      known = await ask(db, clocks);
    } finally {
      isReading = false;
    }
  };
  // A failure is repeated in a moment, and what is known is not used for too long.
  const readAgain = (): void => {
    if (!isReading) read().catch(() => undefined);
  };
  const timer = setInterval(() => {
    if (!isBegun(known) || ageMs(known, clocks) >= BEGUN_EVERY_MS) readAgain();
  }, LOOK_EVERY_MS);
  timer.unref();
  return {
    layout() {
      // After a jump of the clock the first use fails, and the next ones do not wait for the timer.
      if (isTooOld(known, clocks)) readAgain();
      return certain(known, clocks);
    },
    read,
    stop: () => {
      clearInterval(timer);
    },
  };
}

/** The time is that before the read: what it returns may have changed while the answer was on its way. */
async function ask(db: mongo.Db, { nowMs, monotonicMs }: LayoutClocks): Promise<Known> {
  const readAt = { nowMs: nowMs(), monotonicMs: monotonicMs() };
  return { readAt, layout: await readLayout(db) };
}

const isBegun = ({ layout }: Known): boolean => layout !== null && layout.beginMs < Infinity;

function ageMs({ readAt }: Known, { nowMs, monotonicMs }: LayoutClocks): number {
  return Math.max(nowMs() - readAt.nowMs, monotonicMs() - readAt.monotonicMs);
}

const isTooOld = (known: Known, clocks: LayoutClocks): boolean =>
  !isBegun(known) && ageMs(known, clocks) > CERTAIN_FOR_MS;

function certain(known: Known, clocks: LayoutClocks): DayLayout {
  if (!known.layout) {
    throw new StoreUnavailableError(
      'where messages are is not known yet: run deploy/setup/create-indexes.ts of this version',
    );
  }
  if (isTooOld(known, clocks)) {
    throw new StoreUnavailableError('where messages are could not be read for five minutes');
  }
  return known.layout;
}

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

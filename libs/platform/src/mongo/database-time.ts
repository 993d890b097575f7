import type { mongo } from 'mongoose';
import { createLoop, stopSoon } from '../async/loop.ts';
import { monotonicClockMs, systemClockMs } from '../service/clock-and-ids.ts';
import type { ServiceContext } from '../service/run-service.ts';

/**
 * The one clock of all processes for times that clients give: that of the database. It decides when a message is
 * delivered, expires or is cancelled, and when a hold ends, whatever the clock of the process says
 * (docs/decisions/0019-clocks-that-are-wrong.md). Milliseconds since 1970.
 */
export interface DatabaseTime {
  /** The time of the database, from its replies and the monotonic clock. */
  nowMs: () => number;
  /** The earlier one of the database's and of this process's time: for what cannot be undone. */
  earlierMs: () => number;
  /** To be called when another process judges otherwise: asks the database again soon. */
  doubt: () => void;
}

/** Two quartz clocks differ by 3 ms after a minute (50 ppm). */
const LOOK_EVERY_MS = 60_000;
const TICK_MS = 1_000;
/** The monotonic clock stands still while the host is suspended; the wall clock is set afterwards. */
const JUMP_MS = 1_000;
/** The first replies are read until one was as fast: the time is right within that. */
const FAST_REPLY_MS = 20;
const FIRST_LOOKS = 5;

/**
 * Asks the database now and each minute, and at once when the wall clock has jumped. Throws when it does not reply to the
 * first question.
 */
export async function openDatabaseTime(
  { lifecycle, logger }: Pick<ServiceContext<object>, 'lifecycle' | 'logger'>,
  db: mongo.Db,
): Promise<DatabaseTime> {
  const time = createDatabaseTime({
    databaseMs: () => databaseClockMs(db),
    systemMs: systemClockMs,
    monotonicMs: monotonicClockMs,
  });
  for (let n = 0; n < FIRST_LOOKS && (await time.look()) > FAST_REPLY_MS; n += 1);
  const loop = createLoop({
    name: 'time of the database',
    everyMs: TICK_MS,
    run: time.lookWhenDue,
    logger,
  });
  loop.start();
  lifecycle.onStop('time of the database', () => stopSoon(loop));
  return time;
}

/** The time of the database's clock, in milliseconds since 1970. */
export async function databaseClockMs(db: mongo.Db): Promise<number> {
  const { localTime } = (await db.command({ hello: 1 })) as { localTime: Date };
  return localTime.getTime();
}

interface TimeDeps {
  databaseMs: () => Promise<number>;
  systemMs: () => number;
  monotonicMs: () => number;
}

interface Looks {
  /** Resolves with how long the reply took, in milliseconds. */
  look: () => Promise<number>;
  lookWhenDue: () => Promise<void>;
}

export function createDatabaseTime({
  databaseMs,
  systemMs,
  monotonicMs,
}: TimeDeps): DatabaseTime & Looks {
  /** The time of the database is that of the monotonic clock and this. */
  let aheadMs: number | null = null;
  let lookedAtMs = -Infinity;
  let systemAheadMs = 0;
  const nowMs = (): number => (aheadMs === null ? systemMs() : Math.floor(monotonicMs() + aheadMs));
  const systemAhead = (): number => systemMs() - monotonicMs();

  /**
   * The reply was made between question and answer, so that the difference lies between these two bounds. What was known
   * before stays while it does: a slow reply says nothing new.
   */
  async function look(): Promise<number> {
    const askedAtMs = monotonicMs();
    const ms = await databaseMs();
    const repliedAtMs = monotonicMs();
    const [least, most] = [ms - repliedAtMs, ms + 1 - askedAtMs];
    aheadMs = Math.min(most, Math.max(least, aheadMs ?? least));
    [lookedAtMs, systemAheadMs] = [repliedAtMs, systemAhead()];
    return repliedAtMs - askedAtMs;
  }

  return {
    nowMs,
    earlierMs: () => Math.min(nowMs(), systemMs()),
    doubt() {
      lookedAtMs = -Infinity;
    },
    look,
    async lookWhenDue() {
      const hasJumped = Math.abs(systemAhead() - systemAheadMs) > JUMP_MS;
      if (hasJumped || monotonicMs() - lookedAtMs >= LOOK_EVERY_MS) await look();
    },
  };
}

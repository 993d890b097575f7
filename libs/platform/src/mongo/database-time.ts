import type { mongo } from 'mongoose';
import { createLoop, stopSoon } from '../async/loop.ts';
import { monotonicClockMs, systemClockMs } from '../service/clock-and-ids.ts';
import { type AheadMs, boundAhead } from '../service/clock-bounds.ts';
import type { ServiceContext } from '../service/run-service.ts';

/**
 * The one clock of all processes for times that clients give: that of the database. It decides when a message is
 * delivered, expires, is cancelled or is no longer kept, and when a hold ends, whatever the clock of the process says
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
/**
 * The database is asked each second until its time is known as well, or for a minute: where each reply takes longer, no
 * number of them helps.
 */
const KNOWN_WITHIN_MS = 4;
const MOST_LOOKS = 60;
const FIRST_LOOKS = 5;

/** Asks the database now. Throws when it does not reply. */
export async function readDatabaseTime(db: mongo.Db): Promise<FollowedTime> {
  const time = createDatabaseTime({
    databaseMs: () => databaseClockMs(db),
    systemMs: systemClockMs,
    monotonicMs: monotonicClockMs,
  });
  for (let n = 0; n < FIRST_LOOKS; n += 1) await time.look();
  return time;
}

/** Asks the database each minute until the service stops, and at once when the wall clock has jumped. */
export function followDatabaseTime(
  { lifecycle, logger }: Pick<ServiceContext<object>, 'lifecycle' | 'logger'>,
  time: FollowedTime,
): void {
  const loop = createLoop({
    name: 'time of the database',
    everyMs: TICK_MS,
    run: time.lookWhenDue,
    logger,
  });
  loop.start();
  lifecycle.onStop('time of the database', () => stopSoon(loop));
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

export interface FollowedTime extends DatabaseTime {
  look: () => Promise<void>;
  lookWhenDue: () => Promise<void>;
}

export function createDatabaseTime({ databaseMs, systemMs, monotonicMs }: TimeDeps): FollowedTime {
  /** The time of the database is ahead of the monotonic clock by this. */
  let ahead: AheadMs | null = null;
  let lookedAtMs = -Infinity;
  /** Since the database had a clock that it may not have now. */
  let looks = 0;
  let systemAheadMs = 0;
  const nowMs = (): number =>
    ahead ? Math.floor(monotonicMs() + (ahead.leastMs + ahead.mostMs) / 2) : systemMs();
  const systemAhead = (): number => systemMs() - monotonicMs();

  async function look(): Promise<void> {
    const askedAtMs = monotonicMs();
    // Also of a question without a reply: in an outage it is asked, and its failure logged, once a minute.
    lookedAtMs = askedAtMs;
    looks += 1;
    const theirMs = await databaseMs();
    const seen = boundAhead(ahead, { askedAtMs, repliedAtMs: monotonicMs(), theirMs });
    if (!seen.isAsBefore) looks = 1;
    ahead = seen.ahead;
    systemAheadMs = systemAhead();
  }

  function isDue(): boolean {
    if (!ahead) return true;
    if (ahead.mostMs - ahead.leastMs > KNOWN_WITHIN_MS && looks < MOST_LOOKS) return true;
    const hasJumped = Math.abs(systemAhead() - systemAheadMs) > JUMP_MS;
    return hasJumped || monotonicMs() - lookedAtMs >= LOOK_EVERY_MS;
  }

  return {
    nowMs,
    earlierMs: () => Math.min(nowMs(), systemMs()),
    doubt() {
      lookedAtMs = -Infinity;
    },
    look,
    async lookWhenDue() {
      if (isDue()) await look();
    },
  };
}

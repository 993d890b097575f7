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
  /** The time of the database, from its last reply and the monotonic clock. Never ahead of it. */
  nowMs: () => number;
  /** The earlier one of the database's and of this process's time: for what cannot be undone. */
  earlierMs: () => number;
}

/** Two quartz clocks differ by 3 ms after a minute (50 ppm). */
const LOOK_EVERY_MS = 60_000;
/** A reply that took longer says too little: the time in it may be that old. */
const SLOW_REPLY_MS = 1_000;

/** Asks the database now and each minute. Throws when it does not reply to the first question. */
export async function openDatabaseTime(
  { lifecycle, logger }: Pick<ServiceContext<object>, 'lifecycle' | 'logger'>,
  db: mongo.Db,
): Promise<DatabaseTime> {
  const time = createDatabaseTime({
    databaseMs: () => databaseClockMs(db),
    systemMs: systemClockMs,
    monotonicMs: monotonicClockMs,
  });
  await time.look();
  const loop = createLoop({
    name: 'time of the database',
    everyMs: LOOK_EVERY_MS,
    run: time.look,
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

export function createDatabaseTime({
  databaseMs,
  systemMs,
  monotonicMs,
}: TimeDeps): DatabaseTime & { look: () => Promise<void> } {
  let aheadMs: number | null = null;
  const nowMs = (): number => (aheadMs === null ? systemMs() : Math.floor(monotonicMs() + aheadMs));
  return {
    nowMs,
    earlierMs: () => Math.min(nowMs(), systemMs()),
    async look() {
      const askedAtMs = monotonicMs();
      const ms = await databaseMs();
      const repliedAtMs = monotonicMs();
      if (aheadMs === null || repliedAtMs - askedAtMs <= SLOW_REPLY_MS) aheadMs = ms - repliedAtMs;
    },
  };
}

import { type IdPrefix, timeMsOf } from '@posthorn/domain/ids.ts';
import { createLoop, stopSoon } from '../../async/loop.ts';
import { systemClockMs } from '../../service/clock-and-ids.ts';
import type { DatabaseTime } from '../database-time.ts';
import type { Lifecycle } from '../../service/run-service.ts';
import type { Logger } from '../../service/logger.ts';

export interface ClockWatch {
  /** False while this process must store nothing, because its clock and that of MongoDB differ too much. */
  isRight: () => boolean;
}

interface ClockWatchDeps {
  /** The time of MongoDB, in milliseconds since 1970. */
  databaseMs: () => number;
  /** The times that this process stores, in milliseconds since 1970. */
  ownMs: () => readonly number[];
  lifecycle: Pick<Lifecycle, 'waitFor' | 'shutDown'>;
  logger: Logger;
}

/**
 * Honest clocks differ by seconds, and clocks that are wrong by some hours make things late, not lost
 * (docs/decisions/0019-clocks-that-are-wrong.md). An id that is behind by more than the retention, a day at least, lies in a
 * collection that is dropped within a minute; one that is ahead by more than a day is not in the lists.
 */
const MAX_DIFFERENCE_MS = 12 * 3_600_000;
const COMPARE_EVERY_MS = 60_000;
/** Ids that were made by a clock that was ahead stay ahead until the process ends. */
const WRONG_BEFORE_EXIT = 5;

interface Clocks extends Pick<DatabaseTime, 'nowMs'> {
  newId: (prefix: IdPrefix) => string;
}

/** Compares the clocks, and the time in new ids, now and each minute. */
export function openClockWatch(
  { lifecycle, logger }: { lifecycle: Lifecycle; logger: Logger },
  { nowMs, newId }: Clocks,
): ClockWatch {
  const watch = createClockWatch({
    databaseMs: nowMs,
    ownMs: () => [systemClockMs(), timeMsOf(newId('msg'))],
    lifecycle,
    logger,
  });
  watch.look();
  const loop = createLoop({
    name: 'comparison of clocks',
    everyMs: COMPARE_EVERY_MS,
    run() {
      watch.look();
      return Promise.resolve();
    },
    logger,
  });
  loop.start();
  lifecycle.onStop('comparison of clocks', () => stopSoon(loop));
  return watch;
}

/** Ends the process when the clocks still differ too much after five minutes. */
export function createClockWatch({
  databaseMs,
  ownMs,
  lifecycle,
  logger,
}: ClockWatchDeps): ClockWatch & { look: () => void } {
  let timesWrong = 0;
  return {
    isRight: () => timesWrong === 0,
    look() {
      const nowMs = databaseMs();
      const aheadMs = ownMs().map((ms) => ms - nowMs);
      if (aheadMs.every((ms) => Math.abs(ms) <= MAX_DIFFERENCE_MS)) {
        if (timesWrong > 0) {
          logger.info('the clock agrees with that of MongoDB again');
          lifecycle.waitFor(null);
        }
        timesWrong = 0;
        return;
      }
      timesWrong += 1;
      logger.error(
        { aheadMs },
        'the clock differs from that of MongoDB by more than 12 hours: nothing is accepted until the wrong one is corrected',
      );
      lifecycle.waitFor('the clock differs from that of MongoDB by more than 12 hours');
      if (timesWrong > WRONG_BEFORE_EXIT) void lifecycle.shutDown('the clock is wrong', 1);
    },
  };
}

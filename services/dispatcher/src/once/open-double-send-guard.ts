import { setTimeout as wait } from 'node:timers/promises';
import { pause } from '@posthorn/platform/async/pause.ts';
import { startTicker } from '@posthorn/platform/async/ticker.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import type { RunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { DispatcherConfig } from '../config.ts';
import { ANNOUNCED_WITHIN_MS, createAttemptLeases } from './attempt-leases.ts';
import { createCheckRecorded } from './check-recorded.ts';
import { createOutageFreeClock } from '../outages/outage-free-clock.ts';
import { createDoubleSendGuard, type DoubleSendGuard } from './prevent-double-send.ts';
import { createRecentIds, REMEMBERED_IDS } from './recent-ids.ts';

export interface OpenDoubleSendGuard extends DoubleSendGuard {
  /** Announces the attempts under way. To be called before partitions can go to another dispatcher. */
  handOver: () => void;
  /**
   * Resolves when the former owner of newly assigned partitions has announced the attempts that it
   * works on. To be awaited before the first record of those partitions is claimed.
   */
  takeOver: () => Promise<void>;
}

interface GuardParts {
  db: Database;
  runningAttempts: RunningAttempts;
  slowLaneTopic: string;
  /** False while a store or Kafka fails. */
  areStoresUp: () => boolean;
}

const TICK_EVERY_MS = 50;

export function openDoubleSendGuard(
  { lifecycle, keepTrying }: ServiceContext<DispatcherConfig>,
  { db, runningAttempts, slowLaneTopic, areStoresUp }: GuardParts,
): OpenDoubleSendGuard {
  const { stopping } = lifecycle;
  const recentIds = createRecentIds(REMEMBERED_IDS);
  const outageFreeClock = createOutageFreeClock({ areStoresUp, monotonicMs: monotonicClockMs });
  const leases = createAttemptLeases({
    running: runningAttempts,
    onReleased: recentIds.add,
    monotonicMs: monotonicClockMs,
    outageFreeMs: outageFreeClock.countedMs,
    wait: (ms, signal) => pause(ms, signal ? AbortSignal.any([stopping, signal]) : stopping),
    isStopping: () => stopping.aborted,
  });
  const ticker = startTicker(TICK_EVERY_MS, () => {
    outageFreeClock.tick();
    leases.tick();
  });
  lifecycle.onStop('attempt leases', () => {
    ticker.stop();
    leases.tick();
  });
  const guard = createDoubleSendGuard({
    leases,
    recentIds,
    checkRecorded: createCheckRecorded({
      deliveries: createDeliveryStore(db),
      marks: createResendMarks(db),
      keepTrying,
    }),
    slowLaneTopic,
    nowMs: systemClockMs,
  });
  return {
    claim: guard.claim,
    handOver: leases.announceAll,
    takeOver: () => wait(ANNOUNCED_WITHIN_MS),
  };
}

import { timeMsOf } from '@posthorn/domain/ids/ids.ts';
import { createLoop, stopSoon, type Loop } from '@posthorn/platform/async/loop.ts';
import type { StuckDeliveries } from '@posthorn/platform/mongo/deliveries/stuck-deliveries.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases/leases.ts';
import { ifLeaseIsFree } from '@posthorn/platform/mongo/leases/with-lease.ts';
import { restMs } from './sweep-pace.ts';
import {
  moveOn,
  recordMissing,
  type PageDeps,
  type SweepState,
  type Totals,
} from './sweep-stuck-pages.ts';

export interface SweepStuckDeps extends PageDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  /** How long a delivery must be overdue, in milliseconds, to count as stuck. */
  afterMs: number;
  leases: LeaseStore;
  monotonicMs: () => number;
  /** Waits so many milliseconds, or until the signal is aborted. Never rejects. */
  rest: (ms: number, signal: AbortSignal) => Promise<void>;
}

const LEASE = 'reconciler';
const EVERY_MS = 300_000;
/** Large, because each page costs a write of the position and one of the lease. */
const CHECK_PAGE = { maxMessages: 5_000, maxTargets: 5_000 };
/** With the rest between two pages at most 1,000 deliveries a second: less than one dispatcher can make. */
const DELIVERIES_PER_PAGE = 200;
const MOVE_REST_MS = 200;
/** Neither the checks nor the remedies keep the other waiting for longer, however much there is to do. */
const STEP_MS = 60_000;

interface Work extends SweepStuckDeps {
  signal: AbortSignal;
  /** Returns false when another process has the lease, or when this one stops. */
  keepLease: () => Promise<boolean>;
}

/**
 * Finds deliveries that no record in Kafka moves on any more, and publishes such a record: for messages
 * whose deliveries were never recorded, retries that are long overdue, and schedules that nobody ended.
 * It publishes first and marks the deliveries as swept afterwards, so that a crash repeats a step and
 * never skips one. A tick ends when there is nothing left to do; it does nothing while another process
 * holds the lease.
 */
export function createStuckSweep(deps: SweepStuckDeps): Loop {
  const loop = createLoop({
    name: 'sweep of stuck deliveries',
    everyMs: Math.min(EVERY_MS, deps.afterMs / 4),
    run: (signal) => sweepUnderLease(deps, signal),
    logger: deps.logger,
  });
  return {
    start() {
      loop.start();
      void loop.tick();
    },
    tick: loop.tick,
    stop: () => stopSoon(loop),
  };
}

/** Sweeps are minutes apart, and any process may do the next one. */
async function sweepUnderLease(deps: SweepStuckDeps, signal: AbortSignal): Promise<void> {
  const { leases, holder, checks, logger, metrics } = deps;
  metrics.onChecked(await checks.checkedToMs());
  await ifLeaseIsFree(leases, { name: LEASE, holder }, async (renew) => {
    const totals: Totals = {};
    const keepLease = async (): Promise<boolean> => !signal.aborted && renew();
    const work: Work = { ...deps, signal, keepLease };
    while (!(await sweepOnce(work, totals))) if (!(await keepLease())) return;
    metrics.onCompleted();
    logger.info(totals, 'sweep of stuck deliveries completed');
  });
}

/** Returns true when it has done everything that there was to do. */
async function sweepOnce(work: Work, totals: Totals): Promise<boolean> {
  const { checks, stuck, afterMs } = work;
  const { nowMs, checkedTo } = await checks.begin();
  const state: SweepState = { nowMs, afterMs, totals };
  const isChecked = await checkAll(work, checkedTo, state);
  const isMoved = await moveAll(work, stuck.findOverdue, state);
  const isEnded = await moveAll(work, stuck.findUnended, state);
  return isChecked && isMoved && isEnded;
}

/** Checks messages until all are checked that are old enough. Returns false when it stopped before. */
async function checkAll(work: Work, afterId: string, state: SweepState): Promise<boolean> {
  const { checks, metrics, monotonicMs, rest, signal } = work;
  const beforeMs = state.nowMs - state.afterMs;
  const endsAtMs = monotonicMs() + STEP_MS;
  let beganAtMs = monotonicMs();
  for await (const page of checks.pagesOf({ ...CHECK_PAGE, afterId, beforeMs })) {
    await recordMissing(work, page, state);
    const checkedToMs = timeMsOf(page.at(-1)?.id ?? afterId);
    metrics.onChecked(checkedToMs);
    const tookMs = monotonicMs() - beganAtMs;
    await rest(restMs({ tookMs, behindMs: beforeMs - checkedToMs }), signal);
    beganAtMs = monotonicMs();
    if (beganAtMs >= endsAtMs || !(await work.keepLease())) return false;
  }
  await checks.markComplete(beforeMs);
  metrics.onChecked(beforeMs);
  return true;
}

/** Moves on what `find` returns, until it returns no full page. Returns false when it stopped before. */
async function moveAll(
  work: Work,
  find: StuckDeliveries['findOverdue'],
  state: SweepState,
): Promise<boolean> {
  const { monotonicMs, rest, signal } = work;
  const endsAtMs = monotonicMs() + STEP_MS;
  while (await work.keepLease()) {
    const page = await find(state.nowMs - state.afterMs, DELIVERIES_PER_PAGE);
    await moveOn(work, page, state);
    if (page.length < DELIVERIES_PER_PAGE) return true;
    if (monotonicMs() >= endsAtMs) return false;
    await rest(MOVE_REST_MS, signal);
  }
  return false;
}

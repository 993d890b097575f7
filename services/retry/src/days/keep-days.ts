import { dayName } from '@posthorn/domain/ids/days.ts';
import { createLoop, stopSoon, type Loop } from '@posthorn/platform/async/loop.ts';
import type { DayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import type { DayKind } from '@posthorn/platform/mongo/days/days.ts';
import type { StoredLayout } from '@posthorn/platform/mongo/days/stored-layout.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases/leases.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { DayMetrics } from './day-metrics.ts';
import { daySteps, type DayStep } from './which-days.ts';

export interface KeepDaysDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  leases: Pick<LeaseStore, 'hold' | 'release'>;
  days: DayCollections;
  metrics: Pick<DayMetrics, 'onKept'>;
  /** The clock of this process, in milliseconds since 1970. */
  nowMs: () => number;
  logger: Logger;
}

const LEASE = 'keep-days';
const EVERY_MS = 60_000;

/**
 * Makes the collections of the next days ahead of time, completes those that a write has made, and drops those of which
 * everything has expired. A tick only looks while another process holds the lease. Every step may be repeated, and one
 * that fails does not stop those of other days.
 */
export function createKeepDays(deps: KeepDaysDeps): Loop {
  const { leases, holder, logger } = deps;
  const complete = new Set<string>();
  const loop = createLoop({
    name: 'collections of days',
    everyMs: EVERY_MS,
    run: () => keepAll(deps, complete),
    logger,
  });
  return {
    start() {
      loop.start();
      void loop.tick();
    },
    tick: loop.tick,
    async stop() {
      await stopSoon(loop);
      await leases.release(LEASE, holder).catch(() => undefined);
    },
  };
}

type FoundDays = Record<DayKind, readonly number[]>;

/** `complete` has the collections that have all their indexes, as far as this process has seen. */
async function keepAll(deps: KeepDaysDeps, complete: Set<string>): Promise<void> {
  const { days, leases, holder, nowMs } = deps;
  const layout = await days.readLayout();
  if (!layout || layout.beginMs === Infinity) return;
  const databaseMs = await days.nowMs();
  // What one clock that is ahead takes for expired is not dropped.
  const certainMs = Math.min(databaseMs, nowMs());
  const found = await listAll(deps, layout);
  let failures = 0;
  for (const step of daySteps(found, layout, { databaseMs, certainMs })) {
    if (complete.has(placeOf(step)) && step.what === 'complete') continue;
    if (!(await leases.hold(LEASE, holder))) return;
    if (!(await isDone(deps, step, layout))) failures += 1;
    else if (step.what === 'complete') complete.add(placeOf(step));
  }
  await listAll(deps, layout);
  if (failures > 0) throw new Error(`${failures} collections of days are not as they should be`);
}

const placeOf = ({ kind, day }: DayStep): string => `${kind} ${dayName(day)}`;

/** Lists the days that have a collection, and shows them; none where they cannot be listed. */
async function listAll(deps: KeepDaysDeps, layout: StoredLayout): Promise<FoundDays> {
  const list = async (kind: DayKind): Promise<number[]> => {
    const found = await deps.days.list(kind).catch((err: unknown) => {
      deps.logger.warn({ err, kind }, 'the collections of days could not be listed');
      return [];
    });
    deps.metrics.onKept(kind, found, layout);
    return found;
  };
  return { messages: await list('messages'), deliveries: await list('deliveries') };
}

const FAILED: Record<DayStep['what'], string> = {
  complete: 'the collection of a day could not be made or completed',
  drop: 'the collection of a day that has expired could not be dropped',
};

/** Returns false, and logs why, when the step has failed. */
async function isDone(
  { days, logger }: KeepDaysDeps,
  { what, kind, day }: DayStep,
  layout: StoredLayout,
): Promise<boolean> {
  const fields = { kind, day: dayName(day) };
  try {
    if (what === 'drop') await days.drop(kind, day);
    else await days.create(kind, day, layout);
  } catch (err) {
    logger.warn({ err, ...fields }, FAILED[what]);
    return false;
  }
  if (what === 'drop') logger.info(fields, 'dropped the collection of a day that has expired');
  else logger.debug(fields, 'the collection of a day is complete');
  return true;
}

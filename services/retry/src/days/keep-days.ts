import { dayName } from '@posthorn/domain/ids/days.ts';
import { createLoop, type Loop } from '@posthorn/platform/async/loop.ts';
import { withTimeout } from '@posthorn/platform/async/with-timeout.ts';
import type { DayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import { DAY_KINDS, type DayKind } from '@posthorn/platform/mongo/days/days.ts';
import type { StoredLayout } from '@posthorn/platform/mongo/days/stored-layout.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases/leases.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { DayMetrics } from './day-metrics.ts';
import { daysToDrop, daysToHave } from './which-days.ts';

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
/** MongoDB goes on with an index that it builds. */
const STOP_MS = 2_000;

/**
 * Makes the collections of the next days ahead of time, completes those that a write has made, and drops those of which
 * everything has expired. A tick does nothing while another process holds the lease. Every step may be repeated.
 */
export function createKeepDays(deps: KeepDaysDeps): Loop {
  const { leases, holder, logger } = deps;
  const complete = new Set<string>();
  const loop = createLoop({
    name: 'collections of days',
    everyMs: EVERY_MS,
    run: async () => {
      if (await leases.hold(LEASE, holder)) await keepAll(deps, complete);
    },
    logger,
  });
  return {
    start() {
      loop.start();
      void loop.tick();
    },
    tick: loop.tick,
    async stop() {
      await withTimeout(loop.stop(), STOP_MS).catch(() => undefined);
      await leases.release(LEASE, holder).catch(() => undefined);
    },
  };
}

/** `complete` has the collections that have all their indexes, as far as this process has seen. */
async function keepAll(deps: KeepDaysDeps, complete: Set<string>): Promise<void> {
  const { days, metrics, nowMs } = deps;
  const layout = await days.readLayout();
  if (!layout || layout.beginMs === Infinity) return;
  const databaseMs = await days.nowMs();
  // What one clock that is ahead takes for expired is not dropped.
  const certainMs = Math.min(databaseMs, nowMs());
  for (const kind of DAY_KINDS) {
    const found = await days.list(kind);
    const dropped = await dropExpired(deps, kind, daysToDrop(found, layout, certainMs));
    await makeComplete(
      deps,
      kind,
      found.filter((day) => !dropped.has(day)),
      { layout, complete },
    );
    await makeComplete(deps, kind, daysToHave(layout, databaseMs), { layout, complete });
    metrics.onKept(kind, await days.list(kind), layout);
  }
}

async function makeComplete(
  { days, leases, holder, logger }: KeepDaysDeps,
  kind: DayKind,
  wanted: readonly number[],
  { layout, complete }: { layout: StoredLayout; complete: Set<string> },
): Promise<void> {
  for (const day of wanted) {
    const place = `${kind} ${dayName(day)}`;
    if (complete.has(place)) continue;
    if (!(await leases.hold(LEASE, holder))) return;
    await days.create(kind, day, layout);
    complete.add(place);
    logger.debug({ kind, day: dayName(day) }, 'the collection of a day is complete');
  }
}

async function dropExpired(
  { days, logger }: KeepDaysDeps,
  kind: DayKind,
  expired: readonly number[],
): Promise<Set<number>> {
  for (const day of expired) {
    await days.drop(kind, day);
    logger.info({ kind, day: dayName(day) }, 'dropped the collection of a day that has expired');
  }
  return new Set(expired);
}

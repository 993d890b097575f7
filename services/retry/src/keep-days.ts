import { DAY_MS, dayName, dayNumberOf } from '@posthorn/domain/ids.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { DayClock, DayLayout } from '@posthorn/platform/mongo/days/daily-collection.ts';
import {
  type DayCollections,
  DAYS_AHEAD,
  daysToHave,
} from '@posthorn/platform/mongo/days/day-collections.ts';
import { DAY_KINDS, type DayKind, dayRetentionMs } from '@posthorn/platform/mongo/days/days.ts';
import type { StoredLayout } from '@posthorn/platform/mongo/days/layout.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  createLeasedLoop,
  type KeepLease,
  type LeaseHolder,
} from '@posthorn/platform/work/leased-loop.ts';
import { Gauge, type Registry } from 'prom-client';

interface KeepDaysDeps extends LeaseHolder, DayClock {
  days: DayCollections;
  metrics: Pick<DayMetrics, 'onKept'>;
  logger: Logger;
}

const EVERY_MS = 60_000;

/**
 * Makes the collections of the next days ahead of time, completes those that a write has made, and drops those in which
 * everything has expired. While another process has the lease, a tick only reads. Every step may be repeated, and one
 * that fails does not stop those of other days.
 */
export function createKeepDays(deps: KeepDaysDeps): Loop {
  const complete = new Set<string>();
  return createLeasedLoop({
    ...deps,
    name: 'collections of days',
    lease: 'keep-days',
    everyMs: EVERY_MS,
    startsAtOnce: true,
    run: (keep) => keepAll(deps, complete, keep),
  });
}

type FoundDays = Record<DayKind, readonly number[]>;

/** `complete` has the collections that have all their indexes, as far as this process has seen. */
async function keepAll(deps: KeepDaysDeps, complete: Set<string>, keep: KeepLease): Promise<void> {
  const { days, nowMs, earlierMs } = deps;
  const layout = await days.readLayout();
  if (!layout) return;
  const found = await listAll(deps, layout);
  let failures = 0;
  for (const step of daySteps(found, layout, { nowMs: nowMs(), earlierMs: earlierMs() })) {
    if (complete.has(placeOf(step)) && step.what === 'complete') continue;
    if (!(await keep())) return;
    if (!(await isDone(deps, step, layout))) failures += 1;
    else if (step.what === 'complete') complete.add(placeOf(step));
  }
  await listAll(deps, layout);
  if (failures > 0)
    throw new Error(`${failures} collections of days could not be completed or dropped`);
}

const placeOf = ({ kind, day }: DayStep): string => `${kind} ${dayName(day)}`;

/** Lists the days that have a collection, and shows them; none where they cannot be listed. */
async function listAll(deps: KeepDaysDeps, layout: StoredLayout): Promise<FoundDays> {
  const list = async (kind: DayKind): Promise<number[]> => {
    const found = await deps.days.list(kind).catch((err: unknown) => {
      deps.logger.warn({ err, kind }, 'cannot list the collections of days');
      return [];
    });
    deps.metrics.onKept(kind, found, layout);
    return found;
  };
  return {
    messages: await list('messages'),
    deliveries: await list('deliveries'),
    idempotencyKeys: await list('idempotencyKeys'),
  };
}

const FAILED: Record<DayStep['what'], string> = {
  complete: 'cannot make or complete the collection of a day',
  drop: 'cannot drop the collection of a day that has expired',
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

/** `complete` makes the collection of the day, with all its indexes, or what it lacks of that. */
interface DayStep {
  what: 'complete' | 'drop';
  kind: DayKind;
  day: number;
}

/** In milliseconds since 1970. */
interface DayTimes {
  nowMs: number;
  /** A day that has expired by then is dropped: a clock that is ahead must not make a day count as expired. */
  earlierMs: number;
}

/** Returns the steps for the days that have a collection. The days that the next writes need come first. */
export function daySteps(
  found: Readonly<Record<DayKind, readonly number[]>>,
  layout: DayLayout,
  { nowMs, earlierMs }: DayTimes,
): DayStep[] {
  const needed = daysToHave(nowMs);
  const steps = (what: DayStep['what'], daysOf: (kind: DayKind) => readonly number[]): DayStep[] =>
    DAY_KINDS.flatMap((kind) => daysOf(kind).map((day) => ({ what, kind, day })));
  const expired = (kind: DayKind): number[] =>
    daysToDrop(found[kind], { retentionMs: dayRetentionMs(kind, layout) }, earlierMs);
  const isLeft = (kind: DayKind, day: number): boolean =>
    !needed.includes(day) && !expired(kind).includes(day);
  return [
    ...steps('complete', () => needed),
    ...steps('complete', (kind) => found[kind].filter((day) => isLeft(kind, day))),
    ...steps('drop', expired),
  ];
}

/** Returns the days in which everything has expired. */
export function daysToDrop(
  days: readonly number[],
  { retentionMs }: Pick<DayLayout, 'retentionMs'>,
  nowMs: number,
): number[] {
  // No setting allows it, and what is dropped does not come back.
  if (!(retentionMs >= DAY_MS)) throw new ImpossibleError(`nothing is kept for ${retentionMs} ms`);
  return days.filter((day) => overdueMs(day, retentionMs, nowMs) >= 0);
}

/** For how long everything of a day has expired, in milliseconds; negative while something is kept. */
function overdueMs(day: number, retentionMs: number, nowMs: number): number {
  return nowMs - retentionMs - (day + 1) * DAY_MS;
}

interface DayMetrics {
  /** These days have a collection now; none when they could not be listed. */
  onKept: (kind: DayKind, days: readonly number[], layout: DayLayout) => void;
}

interface Kept {
  days: readonly number[];
  retentionMs: number;
}

/** Both are absent before create-indexes has run. Every process reads the days; the one with the lease changes them. */
export function createDayMetrics(registry: Registry, { nowMs, earlierMs }: DayClock): DayMetrics {
  const kept = new Map<DayKind, Kept>();
  const show = (gauge: Gauge<'kind'>, valueOf: (found: Kept) => number | null): void => {
    gauge.reset();
    for (const kind of DAY_KINDS) {
      const found = kept.get(kind);
      const value = found ? valueOf(found) : null;
      if (value !== null) gauge.set({ kind }, value);
    }
  };
  new Gauge({
    name: 'posthorn_days_ahead',
    help: 'How many of the next three days have a collection, as last seen by this process; 0 also when it could not list them. Take the highest of all processes.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      const today = dayNumberOf(nowMs());
      // A write of a process whose clock is ahead may have made a later one.
      const isNext = (day: number): boolean => day > today && day <= today + DAYS_AHEAD;
      show(this, ({ days }) => days.filter(isNext).length);
    },
  });
  new Gauge({
    name: 'posthorn_day_drop_overdue_seconds',
    help: 'For how long everything in the oldest day has expired and its collection is there, as last seen by this process; 0 when it is not. Absent when it could not list them. Take the lowest of all processes.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      show(this, ({ days: [oldest], retentionMs }) =>
        oldest === undefined
          ? null
          : Math.max(0, overdueMs(oldest, retentionMs, earlierMs()) / 1_000),
      );
    },
  });
  return {
    onKept(kind, days, layout) {
      kept.set(kind, { days, retentionMs: dayRetentionMs(kind, layout) });
    },
  };
}

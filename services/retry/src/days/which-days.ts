import { DAY_MS } from '@posthorn/domain/ids/days.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { DayLayout } from '@posthorn/platform/mongo/days/daily-collection.ts';
import { daysToHave } from '@posthorn/platform/mongo/days/days-to-have.ts';
import { DAY_KINDS, type DayKind } from '@posthorn/platform/mongo/days/days.ts';

/** `complete` makes the collection of the day, with all its indexes, or what it lacks of that. */
export interface DayStep {
  what: 'complete' | 'drop';
  kind: DayKind;
  day: number;
}

/** Times are in milliseconds since 1970. */
interface DayClocks {
  databaseMs: number;
  /** What has expired by then is dropped. */
  certainMs: number;
}

/** What is to do about the days that have a collection. The days that the next writes need come first. */
export function daySteps(
  found: Readonly<Record<DayKind, readonly number[]>>,
  layout: DayLayout,
  { databaseMs, certainMs }: DayClocks,
): DayStep[] {
  const needed = daysToHave(layout, databaseMs);
  const steps = (what: DayStep['what'], daysOf: (kind: DayKind) => readonly number[]): DayStep[] =>
    DAY_KINDS.flatMap((kind) => daysOf(kind).map((day) => ({ what, kind, day })));
  const expired = (kind: DayKind): number[] => daysToDrop(found[kind], layout, certainMs);
  const isLeft = (kind: DayKind, day: number): boolean =>
    !needed.includes(day) && !expired(kind).includes(day);
  return [
    ...steps('complete', () => needed),
    ...steps('complete', (kind) => found[kind].filter((day) => isLeft(kind, day))),
    ...steps('drop', expired),
  ];
}

/** Those of these days of which everything has expired. */
export function daysToDrop(
  days: readonly number[],
  { retentionMs }: DayLayout,
  nowMs: number,
): number[] {
  // No setting allows it, and what is dropped does not come back.
  if (!(retentionMs >= DAY_MS)) throw new ImpossibleError(`nothing is kept for ${retentionMs} ms`);
  return days.filter((day) => overdueMs(day, retentionMs, nowMs) >= 0);
}

/** For how long everything of a day has expired, in milliseconds; negative while something is kept. */
export function overdueMs(day: number, retentionMs: number, nowMs: number): number {
  return nowMs - retentionMs - (day + 1) * DAY_MS;
}

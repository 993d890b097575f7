import { DAY_MS, dayNumberOf } from '@posthorn/domain/ids/days.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { DayLayout } from '@posthorn/platform/mongo/days/daily-collection.ts';

/** So many days after today have a collection: as long may nobody make any, such as over a weekend. */
export const DAYS_AHEAD = 3;

/** The numbers of the days that must have a collection at this time, in milliseconds since 1970. */
export function daysToHave({ beginMs }: DayLayout, nowMs: number): number[] {
  const today = dayNumberOf(nowMs);
  const days = Array.from({ length: DAYS_AHEAD + 1 }, (_, ahead) => today + ahead);
  return days.filter((day) => (day + 1) * DAY_MS > beginMs);
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

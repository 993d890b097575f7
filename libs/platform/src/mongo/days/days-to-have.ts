import { DAY_MS, dayNumberOf } from '@posthorn/domain/ids.ts';
import type { DayLayout } from './daily-collection.ts';

/** So many days after today have a collection: as long may nobody make any, such as over a weekend. */
export const DAYS_AHEAD = 3;

/** The numbers of the days that must have a collection at this time, in milliseconds since 1970. */
export function daysToHave({ beginMs }: Pick<DayLayout, 'beginMs'>, nowMs: number): number[] {
  const today = dayNumberOf(nowMs);
  const days = Array.from({ length: DAYS_AHEAD + 1 }, (_, ahead) => today + ahead);
  return days.filter((day) => (day + 1) * DAY_MS > beginMs);
}

import { dayNumberOf } from '@posthorn/domain/ids/days.ts';
import type { DayLayout } from '@posthorn/platform/mongo/days/daily-collection.ts';
import { DAYS_AHEAD } from '@posthorn/platform/mongo/days/days-to-have.ts';
import { DAY_KINDS, type DayKind } from '@posthorn/platform/mongo/days/days.ts';
import { Gauge, type Registry } from 'prom-client';
import { overdueMs } from './which-days.ts';

export interface DayMetrics {
  /** These days have a collection now; none when they could not be listed. */
  onKept: (kind: DayKind, days: readonly number[], layout: DayLayout) => void;
}

interface Kept {
  days: readonly number[];
  retentionMs: number;
}

/** Both are absent until days begin. Every process looks, and one of them does what is to do. */
export function createDayMetrics(registry: Registry, nowMs: () => number): DayMetrics {
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
      // A write with a clock that is ahead may have made a later one.
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
        oldest === undefined ? null : Math.max(0, overdueMs(oldest, retentionMs, nowMs()) / 1_000),
      );
    },
  });
  return {
    onKept(kind, days, { retentionMs }) {
      kept.set(kind, { days, retentionMs });
    },
  };
}

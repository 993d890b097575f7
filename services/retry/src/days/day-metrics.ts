import { dayNumberOf } from '@posthorn/domain/ids/days.ts';
import type { DayLayout } from '@posthorn/platform/mongo/days/daily-collection.ts';
import { DAY_KINDS, type DayKind } from '@posthorn/platform/mongo/days/days.ts';
import { Gauge, type Registry } from 'prom-client';
import { overdueMs } from './which-days.ts';

export interface DayMetrics {
  /** These days have a collection now. */
  onKept: (kind: DayKind, days: readonly number[], layout: DayLayout) => void;
}

interface Kept {
  days: readonly number[];
  retentionMs: number;
}

/** Both are absent in processes that have not kept the days yet: one process at a time does. */
export function createDayMetrics(registry: Registry, nowMs: () => number): DayMetrics {
  const kept = new Map<DayKind, Kept>();
  const show = (gauge: Gauge<'kind'>, valueOf: (found: Kept) => number): void => {
    for (const kind of DAY_KINDS) {
      const found = kept.get(kind);
      if (found) gauge.set({ kind }, valueOf(found));
    }
  };
  new Gauge({
    name: 'posthorn_days_ahead',
    help: 'Days after today that have a collection, as last seen by this process; 3 when all is well. Take the highest of all processes.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      const today = dayNumberOf(nowMs());
      show(this, ({ days }) => days.filter((day) => day > today).length);
    },
  });
  new Gauge({
    name: 'posthorn_day_drop_overdue_seconds',
    help: 'For how long everything in the oldest day has expired and its collection is there, as last seen by this process; 0 when it is not. Take the lowest of all processes.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      show(this, ({ days: [oldest], retentionMs }) =>
        oldest === undefined ? 0 : Math.max(0, overdueMs(oldest, retentionMs, nowMs()) / 1_000),
      );
    },
  });
  return {
    onKept(kind, days, { retentionMs }) {
      kept.set(kind, { days, retentionMs });
    },
  };
}

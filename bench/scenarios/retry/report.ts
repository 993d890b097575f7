import type { LatenessRun } from './lateness.ts';
import type { ParkedRun } from './parked.ts';
import { partRows, spendingNotes } from '../../report/part-rows.ts';
import type { Table } from '../../report/report.ts';

export function latenessTables({ name, figures, spending }: LatenessRun): Table[] {
  return [
    {
      title: name,
      rows: {
        'received after due, ms': figures.receivedAfterMs,
        'released after due, ms': figures.releasedAfterMs,
        'read after release, ms': figures.readingMs,
        'failure stored after its end, ms': figures.storedAfterMs,
      },
      notes: [countsOf(figures)],
    },
    { title: `${name}: CPU and memory`, rows: partRows(spending), notes: spendingNotes(spending) },
  ];
}

function countsOf({ due, missing, duplicates, early }: LatenessRun['figures']): string {
  return `due ${due}, early ${early}, missing ${missing}, duplicates ${duplicates}`;
}

export function parkedTable({ name, cpuPercent, memory, ...run }: ParkedRun): Table {
  return {
    title: `${name}: the retry service`,
    rows: {
      'resident memory, MiB': memory.residentMiB,
      'heap used, MiB': memory.heapUsedMiB,
      timers: memory.timers,
      'CPU when idle, % of a core': cpuPercent,
    },
    notes: [
      `parked in ${run.parkSeconds} s, still parked ${run.stillParked}, released ${run.released}`,
    ],
  };
}

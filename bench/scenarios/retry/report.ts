import type { LatenessSecond } from '../../measure/lateness-figures.ts';
import type { LatenessRun } from './lateness.ts';
import type { ParkedRun } from './parked.ts';
import type { Column, Line } from '../../report/chart.ts';
import { memoryPanels } from '../../report/memory-panels.ts';
import { partRows, spendingNotes } from '../../report/part-rows.ts';
import { describePercentiles, usagePanels } from '../../report/phase-column.ts';
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

export function latenessColumn({ name, figures, spending }: LatenessRun): Column {
  const over = (line: string, value: (second: LatenessSecond) => number | null): Line => ({
    name: line,
    points: figures.timeline.map((each) => [each.second, value(each)]),
  });
  return {
    title: name,
    notes: [
      countsOf(figures),
      `received after due ${describePercentiles(figures.receivedAfterMs)}`,
      `released after due ${describePercentiles(figures.releasedAfterMs)}`,
    ],
    panels: [
      {
        title: 'after due, ms',
        lines: [
          over('received p50', ({ receivedAfterMs }) => receivedAfterMs.p50),
          over('received p99', ({ receivedAfterMs }) => receivedAfterMs.p99),
          over('released p50', ({ releasedAfterMs }) => releasedAfterMs.p50),
          over('released p99', ({ releasedAfterMs }) => releasedAfterMs.p99),
        ],
      },
      {
        title: 'retries per second',
        lines: [
          over('released', ({ released }) => released),
          over('received', ({ received }) => received),
        ],
      },
      ...usagePanels(spending.usage),
    ],
  };
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

export function parkedColumn({ name, cpuPercent, samples, spending, ...run }: ParkedRun): Column {
  const { retry = [] } = spending.usage;
  const share = (percent: number | null): string => `${percent ?? '–'} %`;
  return {
    title: `${name}: the retry service`,
    notes: [
      `still parked ${run.stillParked}, released ${run.released}`,
      `CPU when idle ${share(cpuPercent.after)} of a core, with nothing parked ${share(cpuPercent.before)}`,
    ],
    panels: [
      ...memoryPanels('retry', samples),
      {
        title: 'CPU when idle, % of a core',
        lines: [{ name: 'retry', points: retry.map(({ second, cores }) => [second, 100 * cores]) }],
      },
    ],
  };
}

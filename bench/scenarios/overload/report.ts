import { SERVICES } from '../../../tools/local-stack/supervisor/services.ts';
import type { MemoryLimits } from '../../memory-limits.ts';
import { percentOfBaseline } from './rest.ts';
import { highestOf, type MemorySample } from '../../measure/watch-memory.ts';
import { rounded } from '../../measure/figures.ts';
import type { BacklogRun } from './backlog.ts';
import type { PhaseMemory, WatchedRun } from './watch.ts';
import type { OverloadRun } from './goals.ts';
import type { Table } from '../../report/report.ts';

const MIB = 2 ** 20;

export function overloadTables(run: OverloadRun, limits: MemoryLimits | null): Table[] {
  return [
    phasesTable(run.phases, limits),
    budgetsTable(run),
    backlogTable(run.backlog),
    restTable(run),
  ];
}

function phasesTable(phases: readonly PhaseMemory[], limits: MemoryLimits | null): Table {
  const rows = phases.map(({ name, peakMiB, slowLane, deferrals }) => {
    return [name, { ...peakMiB, 'to the slow lane': slowLane, deferrals }] as const;
  });
  return {
    title: 'Highest resident memory of each phase, MiB',
    rows: Object.fromEntries(rows),
    notes: [describeLimits(limits), ...phases.flatMap(describeDeferrals)],
  };
}

function describeDeferrals({ name, because }: PhaseMemory): string[] {
  const reasons = Object.entries(because).map(([reason, count]) => `${reason} ${count}`);
  return reasons.length === 0 ? [] : [`Deferrals, ${name}: ${reasons.join(', ')}.`];
}

function describeLimits(limits: MemoryLimits | null): string {
  if (!limits) return 'No limits were enforced.';
  const each = SERVICES.map((name) => `${name} ${rounded(limits.limitBytes[name] / MIB)}`);
  return `Limits of the pods (k8s/base), MiB: ${each.join(', ')}; enforced by ${limits.enforcedBy}.`;
}

function budgetsTable({ samples, budgetsMiB }: WatchedRun): Table {
  const rows = SERVICES.flatMap((service) =>
    Object.entries(budgetsMiB[service]).map(([part, budget]) => {
      const used = samples[service].map(({ usedMiB }) => usedMiB[part] ?? null);
      const [highest, last] = [highestOf(used), used.at(-1) ?? null];
      return [`${service}: ${part}`, { budget, highest, 'at the end': last }] as const;
    }),
  );
  return {
    title: 'Parts with a memory budget, MiB by their own estimate',
    rows: Object.fromEntries(rows),
    notes: ['Sampled every two seconds. A service without a row has no budgets.'],
  };
}

function backlogTable({ name, ...run }: BacklogRun): Table {
  return {
    title: name,
    rows: {
      records: { put: run.records, 'waiting at most': run.waitingAtMost, drained: run.drained },
      seconds: { put: run.putSeconds, drained: run.seconds },
      'per second': {
        put: rounded(run.records / run.putSeconds),
        drained: run.deliveredPerSecond,
      },
    },
    notes: [describeEnd(run)],
  };
}

function describeEnd(run: Omit<BacklogRun, 'name'>): string {
  const duplicates = `${run.duplicates} duplicates`;
  if (run.drained === run.records) return `All were delivered, ${duplicates}.`;
  const percent = rounded((100 * run.drained) / run.records);
  const why = run.hasStalled
    ? 'then nothing more was delivered: STALLED'
    : 'then the time was over and the remaining ones were deleted';
  return `${percent} % were delivered in ${run.seconds} s, ${duplicates}; ${why}.`;
}

function restTable({ rest: { seconds, recoveries }, samples }: OverloadRun): Table {
  const rows = SERVICES.flatMap((service) => {
    const recovery = recoveries[service];
    if (!recovery) return [];
    const { baselineBytes, endBytes, recoveredAfterSeconds } = recovery;
    const row = {
      start: rounded(baselineBytes / MIB),
      end: rounded(endBytes / MIB),
      '% of the start': percentOfBaseline(recovery),
      'recovered after, s': recoveredAfterSeconds ?? 'not recovered',
      ...heapOf(samples[service].at(-1)),
    };
    return [[service, row] as const];
  });
  return {
    title: `Resident memory at the start and after ${seconds} s of rest, MiB`,
    rows: Object.fromEntries(rows),
    notes: [
      'The bench did not force garbage collection: the services released this memory by themselves.',
    ],
  };
}

/** Shows where the remaining memory is: used, only reserved by V8, or outside its heap. */
function heapOf(sample: MemorySample | undefined) {
  return {
    'heap used': sample?.heapUsedMiB ?? null,
    'heap reserved': sample?.heapTotalMiB ?? null,
    'outside the heap': sample?.externalMiB ?? null,
  };
}

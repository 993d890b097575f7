import { SERVICES } from '../../../tools/local-stack/supervisor/services.ts';
import type { MemoryLimits } from '../../memory-limits.ts';
import { highestOf, rounded } from '../../measure/figures.ts';
import type { Phase } from '../../measure/phase.ts';
import { atLeast, atMost, type Goal, type Table } from '../../report/report.ts';
import type { BacklogRun } from './backlog.ts';
import { percentOfBaseline, RECOVERED_WITHIN, type RestRun } from './rest.ts';
import type { WatchedRun } from './watch.ts';

/** All measurements of one run. */
export interface OverloadRun extends WatchedRun {
  connections: { few: Phase; many: Phase };
  hot: Phase[];
  backlog: BacklogRun;
  wave: Phase;
  rest: RestRun;
}

/** Connections of a closed loop that sends more than the machine can process. */
export const MANY_CONNECTIONS = 256;

/** Busy endpoints, and the target for the p99 of each, end to end. */
export const HOT_ENDPOINTS = [
  { takesMs: 20, ratePerSecond: 1_500, p99Ms: 500 },
  { takesMs: 200, ratePerSecond: 900, p99Ms: 800 },
];

/** For every service, in every phase. */
const MAX_RESIDENT_MIB = 512;
/** Of the rate at which the dispatcher delivers when it is not overloaded. */
const MIN_MANY_CONNECTIONS_PERCENT = 95;
const MIN_DELIVERED_PERCENT = 99;

export type Judged = Pick<OverloadRun, 'phases' | 'connections' | 'hot' | 'wave' | 'rest'> & {
  backlog: Pick<BacklogRun, 'drained'>;
};

/** `records` and `many` are the requested sizes. A run that is short of time reaches less. */
export function overloadGoals(run: Judged, { records, many }: Record<'records' | 'many', number>) {
  const { accepted, toFailing } = run.wave;
  return [
    ...SERVICES.map((service) => {
      const measured = highestOf(run.phases.map(({ peakMiB }) => peakMiB[service]));
      const name = `${service}: highest resident memory in any phase`;
      return atMost(name, MAX_RESIDENT_MIB, 'MiB', measured);
    }),
    ...connectionGoals(run),
    ...run.hot.flatMap(({ name, deliveredPerSecond, endToEndMs }, index) => {
      const { ratePerSecond = 0, p99Ms = 0 } = HOT_ENDPOINTS[index] ?? {};
      const percent = rounded((100 * deliveredPerSecond) / ratePerSecond);
      return [
        atLeast(`${name}: delivered`, MIN_DELIVERED_PERCENT, '%', percent),
        atMost(`${name}: end to end p99`, p99Ms, 'ms', endToEndMs.p99),
      ];
    }),
    atLeast('backlog: drained', records, '', run.backlog.drained),
    atLeast('wave: endpoints', many, '', accepted + toFailing.accepted),
    ...SERVICES.map((service) => {
      const name = `${service}: resident memory after the rest, compared with the start`;
      const measured = percentOfBaseline(run.rest.recoveries[service]);
      return atMost(name, 100 * RECOVERED_WITHIN, '%', measured);
    }),
  ];
}

function connectionGoals({ connections: { few, many }, phases }: Judged): Goal[] {
  const counted = phases.find(({ name }) => name === many.name);
  const percent = (100 * many.deliveredPerSecond) / few.deliveredPerSecond;
  const measured = Number.isFinite(percent) ? rounded(percent) : null;
  const what = `${MANY_CONNECTIONS} connections`;
  const least = MIN_MANY_CONNECTIONS_PERCENT;
  return [
    atLeast(`${what}: delivered, compared with few connections`, least, '%', measured),
    atMost(`${what}: attempts moved to the slow lane`, 0, '', counted?.slowLane ?? null),
    atMost(`${what}: deferrals`, 0, '', counted?.deferrals ?? null),
  ];
}

const MIB = 2 ** 20;

export function overloadTables(run: OverloadRun, limits: MemoryLimits | null): Table[] {
  return [phasesTable(run, limits), budgetsTable(run), backlogTable(run.backlog), restTable(run)];
}

function phasesTable({ phases }: OverloadRun, limits: MemoryLimits | null): Table {
  const rows = phases.map(({ name, peakMiB, slowLane, deferrals }) => {
    return [name, { ...peakMiB, 'to the slow lane': slowLane, deferrals }] as const;
  });
  const deferred = phases.flatMap(({ name, because }) => {
    const reasons = Object.entries(because).map(([reason, count]) => `${reason} ${count}`);
    return reasons.length === 0 ? [] : [`Deferrals, ${name}: ${reasons.join(', ')}.`];
  });
  const bytesOf = (service: (typeof SERVICES)[number]) => limits?.limitBytes[service] ?? 0;
  const each = SERVICES.map((service) => `${service} ${rounded(bytesOf(service) / MIB)}`);
  const enforced = limits
    ? `Limits of the pods (k8s/base), MiB: ${each.join(', ')}; enforced by ${limits.enforcedBy}.`
    : 'No limits were enforced.';
  return {
    title: 'Highest resident memory of each phase, MiB',
    rows: Object.fromEntries(rows),
    notes: [enforced, ...deferred],
  };
}

function budgetsTable({ samples, budgetsMiB }: OverloadRun): Table {
  const rows = SERVICES.flatMap((service) =>
    Object.entries(budgetsMiB[service]).map(([part, budget]) => {
      const used = samples[service].map(({ usedMiB }) => usedMiB[part] ?? null);
      const row = { budget, highest: highestOf(used), 'at the end': used.at(-1) ?? null };
      return [`${service}: ${part}`, row] as const;
    }),
  );
  return {
    title: 'Parts with a memory budget, MiB by their own estimate',
    rows: Object.fromEntries(rows),
    notes: ['Sampled every two seconds. A service without a row has no budgets.'],
  };
}

function backlogTable({ name, ...run }: BacklogRun): Table {
  const why = run.hasStalled
    ? 'then nothing more was delivered: STALLED'
    : 'then the time was over and the remaining ones were deleted';
  const percent = rounded((100 * run.drained) / run.records);
  const end =
    run.drained === run.records
      ? `All were delivered, ${run.duplicates} duplicates.`
      : `${percent} % were delivered in ${run.seconds} s, ${run.duplicates} duplicates; ${why}.`;
  const putPerSecond = rounded(run.records / run.putSeconds);
  return {
    title: name,
    rows: {
      records: { put: run.records, 'waiting at most': run.waitingAtMost, drained: run.drained },
      seconds: { put: run.putSeconds, drained: run.seconds },
      'per second': { put: putPerSecond, drained: run.deliveredPerSecond },
    },
    notes: [end],
  };
}

/** Shows where the remaining memory is: used, only reserved by V8, or outside its heap. */
function restTable({ rest: { seconds, recoveries }, samples }: OverloadRun): Table {
  const rows = SERVICES.flatMap((service) => {
    const recovery = recoveries[service];
    const last = samples[service].at(-1);
    if (!recovery) return [];
    const row = {
      start: rounded(recovery.baselineBytes / MIB),
      end: rounded(recovery.endBytes / MIB),
      '% of the start': percentOfBaseline(recovery),
      'recovered after, s': recovery.recoveredAfterSeconds ?? 'not recovered',
      'heap used': last?.heapUsedMiB ?? null,
      'heap reserved': last?.heapTotalMiB ?? null,
      'outside the heap': last?.externalMiB ?? null,
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

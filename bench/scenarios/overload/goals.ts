import type { Phase } from '../../measure/phase.ts';
import type { BacklogRun } from './backlog.ts';
import { type RestRun, RECOVERED_WITHIN, percentOfBaseline } from './rest.ts';
import type { WatchedRun } from './watch.ts';
import { SERVICES } from '../../../tools/local-stack/supervisor/services.ts';
import type { Goal } from '../../report/report.ts';
import { highestOf } from '../../measure/watch-memory.ts';
import { rounded } from '../../measure/figures.ts';

/** All measurements of one run. */
export interface OverloadRun extends WatchedRun {
  connections: { few: Phase; many: Phase };
  hot: Phase[];
  batches: Phase;
  backlog: BacklogRun;
  wave: Phase;
  large: Phase;
  rest: RestRun;
}

/** Connections of a closed loop that sends more than the machine can process. */
export const MANY_CONNECTIONS = 256;

/** One busy endpoint, and its target. */
export interface HotEndpoint {
  takesMs: number;
  ratePerSecond: number;
  /** The target for the p99, end to end. */
  p99Ms: number;
}

export const HOT_ENDPOINTS: readonly HotEndpoint[] = [
  { takesMs: 20, ratePerSecond: 1_500, p99Ms: 500 },
  { takesMs: 200, ratePerSecond: 900, p99Ms: 800 },
];

/** For every service, in every phase. */
const MAX_RESIDENT_MIB = 512;
/** Of the rate at which the dispatcher delivers when it is not overloaded. */
const MIN_MANY_CONNECTIONS_PERCENT = 95;
const MIN_DELIVERED_PERCENT = 99;

export type Judged = Pick<
  OverloadRun,
  'phases' | 'connections' | 'hot' | 'backlog' | 'wave' | 'rest'
>;

/** The requested sizes. A run that is short of time reaches less. */
interface WantedSizes {
  records: number;
  many: number;
}

export function overloadGoals(run: Judged, { records, many }: WantedSizes): Goal[] {
  const { accepted, toFailing } = run.wave;
  return [
    ...memoryGoals(run),
    ...connectionGoals(run),
    ...run.hot.flatMap(hotGoals),
    { name: 'backlog: drained', unit: '', atLeast: records, measured: run.backlog.drained },
    { name: 'wave: endpoints', unit: '', atLeast: many, measured: accepted + toFailing.accepted },
    ...recoveryGoals(run),
  ];
}

function memoryGoals({ phases }: Judged): Goal[] {
  return SERVICES.map((service) => ({
    name: `${service}: highest resident memory in any phase`,
    unit: 'MiB',
    atMost: MAX_RESIDENT_MIB,
    measured: highestOf(phases.map(({ peakMiB }) => peakMiB[service])),
  }));
}

function connectionGoals({ connections, phases }: Judged): Goal[] {
  const { few, many } = connections;
  const memory = phases.find(({ name }) => name === many.name);
  const percent = (100 * many.deliveredPerSecond) / few.deliveredPerSecond;
  const none = (what: string, measured: number | null): Goal => {
    return { name: `${MANY_CONNECTIONS} connections: ${what}`, unit: '', atMost: 0, measured };
  };
  return [
    {
      name: `${MANY_CONNECTIONS} connections: delivered, compared with few connections`,
      unit: '%',
      atLeast: MIN_MANY_CONNECTIONS_PERCENT,
      measured: Number.isFinite(percent) ? rounded(percent) : null,
    },
    none('attempts moved to the slow lane', memory?.slowLane ?? null),
    none('deferrals', memory?.deferrals ?? null),
  ];
}

function hotGoals({ name, deliveredPerSecond, endToEndMs }: Phase, index: number): Goal[] {
  const wanted = HOT_ENDPOINTS[index];
  if (!wanted) return [];
  const percent = rounded((100 * deliveredPerSecond) / wanted.ratePerSecond);
  return [
    { name: `${name}: delivered`, unit: '%', atLeast: MIN_DELIVERED_PERCENT, measured: percent },
    { name: `${name}: end to end p99`, unit: 'ms', atMost: wanted.p99Ms, measured: endToEndMs.p99 },
  ];
}

function recoveryGoals({ rest }: Judged): Goal[] {
  return SERVICES.map((service) => ({
    name: `${service}: resident memory after the rest, compared with the start`,
    unit: '%',
    atMost: 100 * RECOVERED_WITHIN,
    measured: percentOfBaseline(rest.recoveries[service]),
  }));
}

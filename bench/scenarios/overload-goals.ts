import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { BACK_WITHIN, percentOfBaseline } from '../measure/comeback.ts';
import type { Goal } from '../measure/goals.ts';
import type { Phase } from '../measure/measure-phase.ts';
import { highestOf } from '../measure/memory-figures.ts';
import { rounded } from '../measure/percentiles.ts';
import { CROWD, HOT_ENDPOINTS } from './overload-sizes.ts';
import type { OverloadRun } from './overload-run.ts';

/** Of every service, in every phase. */
const MAX_RESIDENT_MIB = 512;
/** Of what the dispatcher delivers when it is not overloaded. */
const MIN_CROWD_PERCENT = 95;
const MIN_DELIVERED_PERCENT = 99;

export type Judged = Pick<
  OverloadRun,
  'phases' | 'connections' | 'hot' | 'backlog' | 'wave' | 'rest'
>;

/** Sizes that were asked for; fewer are reached when the time is over. */
export interface WantedSizes {
  records: number;
  many: number;
}

export function overloadGoals(run: Judged, { records, many }: WantedSizes): Goal[] {
  const { accepted, aside } = run.wave;
  return [
    ...memoryGoals(run),
    ...crowdGoals(run),
    ...run.hot.flatMap(hotGoals),
    { name: 'backlog: drained', unit: '', atLeast: records, measured: run.backlog.drained },
    { name: 'wave: endpoints', unit: '', atLeast: many, measured: accepted + aside.accepted },
    ...comebackGoals(run),
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

function crowdGoals({ connections, phases }: Judged): Goal[] {
  const { few, many } = connections;
  const memory = phases.find(({ name }) => name === many.name);
  const percent = (100 * many.deliveredPerSecond) / few.deliveredPerSecond;
  const none = (what: string, measured: number | null): Goal => {
    return { name: `${CROWD} connections: ${what}`, unit: '', atMost: 0, measured };
  };
  return [
    {
      name: `${CROWD} connections: delivered, of the closed loop before`,
      unit: '%',
      atLeast: MIN_CROWD_PERCENT,
      measured: Number.isFinite(percent) ? rounded(percent) : null,
    },
    none('copies to the slow lane', memory?.slowLane ?? null),
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

function comebackGoals({ rest }: Judged): Goal[] {
  return SERVICES.map((service) => ({
    name: `${service}: resident after the rest, of the start`,
    unit: '%',
    atMost: 100 * BACK_WITHIN,
    measured: percentOfBaseline(rest.comebacks[service]),
  }));
}

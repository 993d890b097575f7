import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { highestOf, rounded } from '../measure/figures.ts';
import type { Phase } from '../measure/phase.ts';
import type { Counts } from '../measure/metrics.ts';
import {
  cacheUse,
  configurationReads,
  OPERATIONS,
  sumOf,
  type WorkCounts,
} from '../measure/store-work.ts';
import { podMemoryLimits } from '../pod-limits.ts';
import { atMost, type Goal, type Table } from './report.ts';

export interface PopulationRun {
  phase: Pick<Phase, 'accepted' | 'missing' | 'parts' | 'usage'>;
  /** What stores and services did during the phase. */
  work: WorkCounts;
  /** Process of a service → its metrics at the end. */
  metrics: WorkCounts['metrics'];
}

/** Reads of configuration for each delivery. A webhook that got no message before cannot be in a cache. */
const MOST_READS = { uniform: 0.5, zipf: 0.02 };
const MIB = 2 ** 20;

export function populationGoals(run: PopulationRun, distribution: 'uniform' | 'zipf'): Goal[] {
  const reads = perDelivery(run, configurationReads(run.work.statements), 4);
  const what = 'reads of configuration from MongoDB for each delivery';
  return [
    atMost(what, MOST_READS[distribution], '', reads),
    ...Object.keys(run.metrics).map((name) => {
      const highest = highestMiB(run, name);
      return atMost(`${name}: highest resident memory`, limitMiBOf(name), 'MiB', highest);
    }),
  ];
}

export function populationTables(run: PopulationRun, notes: string[]): Table[] {
  const { mongodb, redis } = run.work;
  const tables = [
    { title: 'The processes of the services', rows: serviceRows(run), notes },
    {
      title: 'MongoDB: statements per second by collection',
      rows: collectionRows(run),
      notes: ['reads: find; commands: aggregate, count; getmore: change streams, long lists'],
    },
    { title: 'MongoDB: commands', rows: commandRows(run, mongodb), notes: [] },
    { title: 'Redis: commands', rows: commandRows(run, redis), notes: [] },
    { title: 'Caches', rows: cacheRows(run), notes: [] },
  ];
  return tables.filter(({ rows }) => Object.keys(rows).length > 0);
}

type Rows = Table['rows'];

function serviceRows(run: PopulationRun): Rows {
  const rows = Object.entries(run.work.metrics).map(([name, work]) => {
    const operations = 'posthorn_store_operation_duration_seconds_count{';
    const perSecondOf = (store: string): number => {
      const isOn = (each: string) =>
        each.startsWith(operations) && each.includes(`store="${store}"`);
      return perSecond(run, sumOf(work, isOn));
    };
    const isUsed = (each: string) => each.startsWith('posthorn_memory_used_bytes{');
    const row = {
      'CPU s per 1,000': run.phase.parts[name]?.cpuSecondsPer1000 ?? null,
      'MongoDB/s': perSecondOf('mongodb'),
      'Redis/s': perSecondOf('redis'),
      'Kafka/s': perSecondOf('kafka'),
      'resident MiB': highestMiB(run, name),
      'limit MiB': limitMiBOf(name),
      'caches and queues MiB': rounded(sumOf(run.metrics[name] ?? {}, isUsed) / MIB),
    };
    return [name, row] as const;
  });
  return Object.fromEntries(rows);
}

const highestMiB = ({ phase }: PopulationRun, name: string): number | null =>
  highestOf((phase.usage[name] ?? []).map(({ residentMiB }) => residentMiB));

/** The limit of the pod of this service; "gateway-2" is a gateway. */
function limitMiBOf(name: string): number {
  const service = SERVICES.find((each) => name.startsWith(each));
  return service === undefined ? Infinity : podMemoryLimits()[service] / MIB;
}

function collectionRows(run: PopulationRun): Rows {
  const { statements } = run.work;
  const collections = Object.keys(statements).map((name) => name.slice(0, name.indexOf('/')));
  const rows = [...new Set(collections)].sort().map((collection) => {
    const rates = OPERATIONS.map((operation) => {
      const title = operation === 'queries' ? 'reads' : operation;
      return [title, perSecond(run, statements[`${collection}/${operation}`] ?? 0)] as const;
    });
    const all = sumOf(statements, (name) => name.startsWith(`${collection}/`));
    const row = { ...Object.fromEntries(rates), 'per delivery': perDelivery(run, all) };
    return [collection, row] as const;
  });
  return Object.fromEntries(rows);
}

/** Rarer commands are left out. */
const MIN_PER_SECOND = 0.1;

function commandRows(run: PopulationRun, counts: Counts): Rows {
  const frequent = Object.entries(counts)
    .filter(([, count]) => perSecond(run, count) >= MIN_PER_SECOND)
    .toSorted(([, a], [, b]) => b - a);
  const rowOf = (count: number) => ({
    'per second': perSecond(run, count),
    'per delivery': perDelivery(run, count),
  });
  return Object.fromEntries(frequent.map(([name, count]) => [name, rowOf(count)] as const));
}

function cacheRows({ work }: PopulationRun): Rows {
  const rows = Object.entries(work.metrics).flatMap(([process, metrics]) =>
    Object.entries(cacheUse(metrics)).map(([cache, use]) => [`${process}: ${cache}`, use] as const),
  );
  return Object.fromEntries(rows);
}

const perSecond = ({ work }: PopulationRun, count: number): number =>
  rounded((count * 1_000) / work.ms, 1);

function perDelivery(
  { phase: { accepted, missing } }: PopulationRun,
  count: number,
  decimals = 3,
): number | null {
  return accepted === missing ? null : rounded(count / (accepted - missing), decimals);
}

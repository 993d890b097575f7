import { SERVICES } from '../../../tools/local-stack/supervisor/services.ts';
import { rounded } from '../../measure/figures.ts';
import type { Phase } from '../../measure/phase.ts';
import {
  cacheUse,
  configurationReads,
  type Counts,
  sumOf,
  type WorkCounts,
} from '../../measure/store-work.ts';
import { podMemoryLimits } from '../../pod-limits.ts';
import type { Goal, Table } from '../../report/report.ts';

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
  const deliveries = deliveriesOf(run);
  const reads = configurationReads(run.work.statements);
  return [
    {
      name: 'reads of configuration from MongoDB for each delivery',
      unit: '',
      atMost: MOST_READS[distribution],
      measured: deliveries === 0 ? null : rounded(reads / deliveries, 4),
    },
    ...Object.keys(run.metrics).map((name) => ({
      name: `${name}: highest resident memory`,
      unit: 'MiB',
      atMost: limitMiBOf(name),
      measured: highestMiB(run, name),
    })),
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

function deliveriesOf({ phase }: PopulationRun): number {
  return phase.accepted - phase.missing;
}

function serviceRows(run: PopulationRun): Record<string, object> {
  const rows = Object.entries(run.work.metrics).map(([name, work]) => {
    const perSecondOf = (store: string): number => {
      const count = sumOf(work, (metric) => isOperationOn(metric, store));
      return perSecond(run, count);
    };
    const row = {
      'CPU s per 1,000': run.phase.parts[name]?.cpuSecondsPer1000 ?? null,
      'MongoDB/s': perSecondOf('mongodb'),
      'Redis/s': perSecondOf('redis'),
      'Kafka/s': perSecondOf('kafka'),
      'resident MiB': highestMiB(run, name),
      'limit MiB': limitMiBOf(name),
      'caches and queues MiB': usedMiB(run.metrics[name] ?? {}),
    };
    return [name, row] as const;
  });
  return Object.fromEntries(rows);
}

function isOperationOn(metric: string, store: string): boolean {
  const isCount = metric.startsWith('posthorn_store_operation_duration_seconds_count{');
  return isCount && metric.includes(`store="${store}"`);
}

function usedMiB(metrics: Counts): number {
  const bytes = sumOf(metrics, (name) => name.startsWith('posthorn_memory_used_bytes{'));
  return rounded(bytes / MIB);
}

function highestMiB({ phase }: PopulationRun, name: string): number | null {
  const samples = phase.usage[name] ?? [];
  return samples.length === 0 ? null : Math.max(...samples.map(({ residentMiB }) => residentMiB));
}

/** The limit of the pod of this service; "gateway-2" is a gateway. */
function limitMiBOf(name: string): number {
  const service = SERVICES.find((each) => name.startsWith(each));
  return service === undefined ? Infinity : podMemoryLimits()[service] / MIB;
}

const OPERATIONS = ['queries', 'commands', 'getmore', 'insert', 'update', 'remove'];

function collectionRows(run: PopulationRun): Record<string, object> {
  const { statements } = run.work;
  const collections = Object.keys(statements).map((name) => name.slice(0, name.indexOf('/')));
  const rows = [...new Set(collections)].sort().map((collection) => {
    const rates = OPERATIONS.map((operation) => {
      const title = operation === 'queries' ? 'reads' : operation;
      return [title, perSecond(run, statements[`${collection}/${operation}`] ?? 0)] as const;
    });
    const all = sumOf(statements, (name) => name.startsWith(`${collection}/`));
    return [collection, { ...Object.fromEntries(rates), 'per delivery': perDelivery(run, all) }];
  });
  return Object.fromEntries(rows) as Record<string, object>;
}

/** Rarer commands are left out. */
const MIN_PER_SECOND = 0.1;

function commandRows(run: PopulationRun, counts: Counts): Record<string, object> {
  const frequent = Object.entries(counts)
    .filter(([, count]) => perSecond(run, count) >= MIN_PER_SECOND)
    .toSorted(([, a], [, b]) => b - a);
  const rows = frequent.map(([name, count]) => [
    name,
    { 'per second': perSecond(run, count), 'per delivery': perDelivery(run, count) },
  ]);
  return Object.fromEntries(rows) as Record<string, object>;
}

function cacheRows({ work }: PopulationRun): Record<string, object> {
  const rows = Object.entries(work.metrics).flatMap(([process, metrics]) =>
    Object.entries(cacheUse(metrics)).map(([cache, { requests, hits }]) => [
      `${process}: ${cache}`,
      { requests, 'hits, %': hits },
    ]),
  );
  return Object.fromEntries(rows) as Record<string, object>;
}

function perSecond({ work }: PopulationRun, count: number): number {
  return rounded((count * 1_000) / work.ms, 1);
}

function perDelivery(run: PopulationRun, count: number): number | null {
  const deliveries = deliveriesOf(run);
  return deliveries === 0 ? null : rounded(count / deliveries, 3);
}

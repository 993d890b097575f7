import type { UsualService } from '../../tools/local-stack/supervisor/services.ts';
import { rounded } from './figures.ts';
import type { UsageWatch } from './watch-usage.ts';

export interface MemorySample {
  second: number;
  residentMiB: number | null;
  heapUsedMiB: number | null;
  /** Memory that V8 has reserved for its heap, used or not. */
  heapTotalMiB: number | null;
  /** Buffers and the like, outside the heap. */
  externalMiB: number | null;
  timers: number | null;
  /** For each part that has a memory budget, by the service's own estimate. */
  usedMiB: Record<string, number>;
}

interface MemorySpec {
  service: UsualService;
  /** Reading its metrics costs the service some milliseconds. */
  everyMs: number;
}

interface MemoryWatch {
  /** Adds a last sample and returns all samples. */
  stop: () => Promise<MemorySample[]>;
}

interface Watched {
  stack: { opsUrlOf: (name: UsualService) => string };
  usage: UsageWatch;
}

/** Samples the memory and timers of one service from now on. */
export async function watchMemory(
  watched: Watched,
  { service, everyMs }: MemorySpec,
): Promise<MemoryWatch> {
  const samples: MemorySample[] = [];
  const startedAtMs = performance.now();
  const look = async (): Promise<void> => {
    const second = rounded((performance.now() - startedAtMs) / 1_000);
    samples.push({ second, ...(await sampleOf(watched, service)) });
  };
  let looking: Promise<void> | null = null;
  const sampleOnce = (): Promise<void> =>
    (looking ??= look().finally(() => {
      looking = null;
    }));
  await sampleOnce();
  const timer = setInterval(() => void sampleOnce(), everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await looking;
      await look();
      return samples;
    },
  };
}

async function sampleOf({ stack, usage }: Watched, service: UsualService) {
  const residentMiB = inMiB(usage.read()[service]?.residentBytes);
  const metrics = await readMetrics(stack.opsUrlOf(service));
  return {
    residentMiB,
    heapUsedMiB: inMiB(metricIn(metrics, 'nodejs_heap_size_used_bytes')),
    heapTotalMiB: inMiB(metricIn(metrics, 'nodejs_heap_size_total_bytes')),
    externalMiB: inMiB(metricIn(metrics, 'nodejs_external_memory_bytes')),
    timers: metricIn(metrics, 'nodejs_active_resources', 'type="Timeout"'),
    usedMiB: partsInMiB(metrics, 'posthorn_memory_used_bytes'),
  };
}

/** Returns the memory budget of each part of a service that has one. */
export async function readBudgetsMiB(opsUrl: string): Promise<Record<string, number>> {
  return partsInMiB(await readMetrics(opsUrl), 'posthorn_memory_budget_bytes');
}

function partsInMiB(metrics: string, name: string): Record<string, number> {
  const parts = Object.entries(metricBy(metrics, name, 'part'));
  return Object.fromEntries(parts.map(([part, bytes]) => [part, toMiB(bytes)]));
}

function inMiB(bytes: number | null | undefined): number | null {
  return bytes === null || bytes === undefined ? null : toMiB(bytes);
}

function toMiB(bytes: number): number {
  return rounded(bytes / 2 ** 20);
}

/** The first, the highest and the last value; null where none could be read. */
interface Course {
  before: number | null;
  highest: number | null;
  after: number | null;
}

export interface MemoryFigures {
  residentMiB: Course;
  heapUsedMiB: Course;
  timers: Course;
}

export function memoryFigures(samples: readonly MemorySample[]): MemoryFigures {
  return {
    residentMiB: courseOf(samples.map(({ residentMiB }) => residentMiB)),
    heapUsedMiB: courseOf(samples.map(({ heapUsedMiB }) => heapUsedMiB)),
    timers: courseOf(samples.map(({ timers }) => timers)),
  };
}

function courseOf(values: readonly (number | null)[]): Course {
  return { before: values[0] ?? null, highest: highestOf(values), after: values.at(-1) ?? null };
}

export function highestOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** Returns all metrics of one service as text; empty when it does not respond. */
export async function readMetrics(opsUrl: string): Promise<string> {
  try {
    const response = await fetch(`${opsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) });
    return await response.text();
  } catch {
    return '';
  }
}

/** Returns the sum of the samples of one metric whose labels contain `labels`; null when there is none. */
export function metricIn(text: string, name: string, labels = ''): number | null {
  const values = samplesOf(text, name)
    .filter((line) => line.includes(labels))
    .map(valueOf);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

/** Returns the values of one metric by one of its labels; samples without that label are left out. */
export function metricBy(text: string, name: string, label: string): Record<string, number> {
  const labelled = new RegExp(`[{,]${label}="([^"]*)"`);
  const values = samplesOf(text, name).flatMap((line) => {
    const labelValue = labelled.exec(line)?.[1];
    return labelValue === undefined ? [] : [[labelValue, valueOf(line)] as const];
  });
  return Object.fromEntries(values);
}

/** Returns the values of one metric, one for each set of labels. */
export function metricValues(text: string, name: string): number[] {
  return samplesOf(text, name).map(valueOf);
}

function samplesOf(text: string, name: string): string[] {
  // A metric without labels has no braces.
  return text.split('\n').filter((line) => /^\w+/.exec(line)?.[0] === name);
}

function valueOf(line: string): number {
  return Number(line.slice(line.lastIndexOf(' ') + 1));
}

import type { ServiceName } from '../../tools/local-stack/supervisor/services.ts';
import { rounded } from '../figures/percentiles.ts';
import { metricBy, metricIn, readMetrics } from './read-metrics.ts';
import type { UsageWatch } from './watch-usage.ts';

export interface MemorySample {
  second: number;
  residentMiB: number | null;
  heapUsedMiB: number | null;
  /** What V8 has reserved for its heap, used or not. */
  heapTotalMiB: number | null;
  /** Buffers and the like, outside the heap. */
  externalMiB: number | null;
  timers: number | null;
  /** For each part that has a memory budget, by the service's own estimate. */
  usedMiB: Record<string, number>;
}

export interface MemorySpec {
  service: ServiceName;
  /** Reading its metrics costs the service some milliseconds. */
  everyMs: number;
}

export interface MemoryWatch {
  /** Takes a last sample. Returns all. */
  stop: () => Promise<MemorySample[]>;
}

interface Watched {
  stack: { opsUrlOf: (name: ServiceName) => string };
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

async function sampleOf({ stack, usage }: Watched, service: ServiceName) {
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

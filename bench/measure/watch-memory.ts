import type { UsualService } from '../../tools/local-stack/supervisor/services.ts';
import { highestOf, rounded } from './figures.ts';
import { metricBy, metricIn, readMetrics } from './metrics.ts';
import type { UsageWatch } from './watch-usage.ts';

export type MemorySample = Awaited<ReturnType<typeof sampleOf>> & { second: number };

interface Watched {
  stack: { opsUrlOf: (name: UsualService) => string };
  usage: UsageWatch;
}

/** Samples the memory and timers of one service from now on. Reading its metrics costs the service some milliseconds. */
export async function watchMemory(
  { stack, usage }: Watched,
  { service, everyMs }: { service: UsualService; everyMs: number },
) {
  const samples: MemorySample[] = [];
  const startedAtMs = performance.now();
  const look = async (): Promise<void> => {
    const second = rounded((performance.now() - startedAtMs) / 1_000);
    const resident = usage.read()[service]?.residentBytes;
    samples.push({ second, ...(await sampleOf(stack.opsUrlOf(service), resident)) });
  };
  let looking: Promise<void> | null = null;
  const lookOnce = (): Promise<void> =>
    (looking ??= look().finally(() => {
      looking = null;
    }));
  await lookOnce();
  const timer = setInterval(() => void lookOnce(), everyMs);
  return {
    /** Adds a last sample and returns all samples. */
    async stop(): Promise<MemorySample[]> {
      clearInterval(timer);
      await looking;
      await look();
      return samples;
    },
  };
}

async function sampleOf(opsUrl: string, residentBytes: number | undefined) {
  const metrics = await readMetrics(opsUrl);
  return {
    residentMiB: inMiB(residentBytes),
    heapUsedMiB: inMiB(metricIn(metrics, 'nodejs_heap_size_used_bytes')),
    /** Reserved by V8 for its heap, used or not. */
    heapTotalMiB: inMiB(metricIn(metrics, 'nodejs_heap_size_total_bytes')),
    /** Buffers and the like, outside the heap. */
    externalMiB: inMiB(metricIn(metrics, 'nodejs_external_memory_bytes')),
    timers: metricIn(metrics, 'nodejs_active_resources', 'type="Timeout"'),
    /** For each part that has a memory budget, by the service's own estimate. */
    usedMiB: partsInMiB(metrics, 'posthorn_memory_used_bytes'),
  };
}

/** Returns the memory budget of each part of a service that has one. */
export async function readBudgetsMiB(opsUrl: string): Promise<Record<string, number>> {
  return partsInMiB(await readMetrics(opsUrl), 'posthorn_memory_budget_bytes');
}

function partsInMiB(metrics: string, name: string): Record<string, number> {
  const parts = Object.entries(metricBy(metrics, name, 'part'));
  return Object.fromEntries(parts.map(([part, bytes]) => [part, rounded(bytes / MIB)]));
}

const MIB = 2 ** 20;

export const inMiB = (bytes: number | null | undefined): number | null =>
  typeof bytes === 'number' ? rounded(bytes / MIB) : null;

/** Each as its first, highest and last value; null where none could be read. */
export const memoryFigures = (samples: readonly MemorySample[]) => ({
  residentMiB: courseOf(samples.map(({ residentMiB }) => residentMiB)),
  heapUsedMiB: courseOf(samples.map(({ heapUsedMiB }) => heapUsedMiB)),
  timers: courseOf(samples.map(({ timers }) => timers)),
});

function courseOf(values: readonly (number | null)[]) {
  return { before: values[0] ?? null, highest: highestOf(values), after: values.at(-1) ?? null };
}

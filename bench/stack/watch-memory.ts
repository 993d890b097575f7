import type { ServiceName } from '../../deploy/local/supervisor/services.ts';
import { rounded } from '../measure/percentiles.ts';
import { readMetric } from './read-metric.ts';
import type { BenchStack } from './start-stack.ts';
import type { UsageWatch } from './watch-usage.ts';

export interface MemorySample {
  second: number;
  residentMiB: number | null;
  heapUsedMiB: number | null;
  timers: number | null;
}

export interface MemorySpec {
  service: ServiceName;
  /** Reading its metrics costs the service some milliseconds. */
  everyMs: number;
}

export interface MemoryWatch {
  /** Takes a last sample and answers all. */
  stop: () => Promise<MemorySample[]>;
}

/** What one service holds of memory and timers, from now on. */
export async function watchMemory(
  { stack, usage }: { stack: BenchStack; usage: UsageWatch },
  { service, everyMs }: MemorySpec,
): Promise<MemoryWatch> {
  const samples: MemorySample[] = [];
  const startedAtMs = performance.now();
  const opsUrl = stack.opsUrlOf(service);
  const look = async (): Promise<void> => {
    const second = rounded((performance.now() - startedAtMs) / 1_000);
    const residentMiB = inMiB(usage.read()[service]?.residentBytes);
    const [timers, heapUsed] = await Promise.all([
      readMetric(opsUrl, 'nodejs_active_resources', 'type="Timeout"'),
      readMetric(opsUrl, 'nodejs_heap_size_used_bytes'),
    ]);
    samples.push({ second, residentMiB, heapUsedMiB: inMiB(heapUsed), timers });
  };
  await look();
  const timer = setInterval(() => void look(), everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await look();
      return samples;
    },
  };
}

function inMiB(bytes: number | null | undefined): number | null {
  return bytes === null || bytes === undefined ? null : rounded(bytes / 2 ** 20);
}

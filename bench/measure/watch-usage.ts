import { winePrefix } from '../../tools/local-stack/stores/mongodb-native.ts';
import type { StackProcess } from '../../tools/local-stack/processes/child.ts';
import { pidsWithEnvironment, type ProcessUsage, readProcessUsage } from './process-usage.ts';
import { highestOf } from './figures.ts';
import { type PerService, perService } from './per-service.ts';

/** Name of a part (gateway, kafka, …) → its CPU time and memory so far. */
export type Usage = Record<string, ProcessUsage>;

export interface UsageSample {
  atMs: number;
  usage: Usage;
}

export const GENERATOR = 'generator';

const EVERY_MS = 1_000;

export type UsageWatch = ReturnType<typeof watchUsage>;

export function watchUsage(processes: readonly StackProcess[], stackDir: string) {
  const parts = partsOf(processes, stackDir);
  /** One a second since the start. */
  const samples: UsageSample[] = [];
  /** Returns the usage of all parts now. Without parts in containers, and without any where there is no /proc. */
  const read = (): Usage => readAll(parts);
  const timer = setInterval(() => {
    samples.push({ atMs: performance.now(), usage: read() });
  }, EVERY_MS);
  const stop = (): void => {
    clearInterval(timer);
  };
  return { read, samples: samples as readonly UsageSample[], stop };
}

function partsOf(processes: readonly StackProcess[], stackDir: string): Map<string, number[]> {
  const parts = new Map(processes.map(({ name, pid }) => [name, [pid]]));
  const known = new Set(processes.map(({ pid }) => pid));
  // The build of MongoDB for Windows does its waiting and locking in a process of Wine.
  const wine = pidsWithEnvironment(`WINEPREFIX=${winePrefix(stackDir)}`);
  const others = wine.filter((pid) => !known.has(pid));
  if (others.length > 0) parts.set('mongodb', [...(parts.get('mongodb') ?? []), ...others]);
  return parts;
}

function readAll(parts: ReadonlyMap<string, readonly number[]>): Usage {
  const { user, system } = process.cpuUsage();
  // This process runs the receivers and the report too.
  const own = { cpuSeconds: (user + system) / 1e6, residentBytes: process.memoryUsage.rss() };
  const usage: Usage = { [GENERATOR]: own };
  for (const [name, pids] of parts) {
    const read = pids.map(readProcessUsage).filter((each) => each !== undefined);
    if (read.length > 0) usage[name] = read.reduce(sum);
  }
  return usage;
}

const sum = (a: ProcessUsage, b: ProcessUsage): ProcessUsage => ({
  cpuSeconds: a.cpuSeconds + b.cpuSeconds,
  residentBytes: a.residentBytes + b.residentBytes,
});

const PEAK_EVERY_MS = 200;

export function watchPeaks({ read }: Pick<UsageWatch, 'read'>) {
  let peaks = perService<number | null>(() => null);
  const look = (): void => {
    const usage = read();
    peaks = perService((service) => highestOf([peaks[service], usage[service]?.residentBytes]));
  };
  const timer = setInterval(look, PEAK_EVERY_MS);
  return {
    /** Returns the highest resident memory of each service since the last call, in bytes; null where it cannot be read. */
    take(): PerService<number | null> {
      look();
      const taken = peaks;
      peaks = perService<number | null>(() => null);
      return taken;
    },
    stop(): void {
      clearInterval(timer);
    },
  };
}

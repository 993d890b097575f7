import { rounded } from '../../measure/figures.ts';
import type { Bench } from '../../scenario.ts';
import { queryEach, type PerService, perService } from '../../measure/per-service.ts';
import {
  metricBy,
  metricIn,
  readMetrics,
  type MemorySample,
  readBudgetsMiB,
  watchMemory,
} from '../../measure/watch-memory.ts';
import { watchPeaks } from '../../measure/watch-usage.ts';

/** The memory and deferrals of one phase of the run. */
export interface PhaseMemory {
  name: string;
  fromSecond: number;
  toSecond: number;
  /** Highest resident memory; null where it cannot be read. */
  peakMiB: PerService<number | null>;
  /**
   * Attempts that moved to the slow lane, and that were deferred; null when the metrics could not be
   * read.
   */
  slowLane: number | null;
  deferrals: number | null;
  /** The deferrals by their reason. */
  because: Record<string, number>;
}

/** Follows the memory of the three services through the phases of one run. */
export interface OverloadWatch {
  during: <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;
  stop: () => Promise<WatchedRun>;
}

export interface WatchedRun {
  phases: PhaseMemory[];
  samples: PerService<MemorySample[]>;
  /** For each part that has a budget. */
  budgetsMiB: PerService<Record<string, number>>;
}

/** Reading the metrics more often would be a considerable part of the CPU of an idle service. */
const SAMPLE_EVERY_MS = 2_000;

export async function watchOverload(bench: Bench): Promise<OverloadWatch> {
  const startedAtMs = performance.now();
  const second = (): number => rounded((performance.now() - startedAtMs) / 1_000);
  const phases: PhaseMemory[] = [];
  const peaks = watchPeaks(bench.usage);
  const budgetsMiB = await queryEach((service) => readBudgetsMiB(bench.stack.opsUrlOf(service)));
  const watches = await queryEach((service) =>
    watchMemory(bench, { service, everyMs: SAMPLE_EVERY_MS }),
  );
  return {
    async during(name, work) {
      bench.signal.throwIfAborted();
      peaks.take();
      const fromSecond = second();
      const before = await readCounters(bench);
      const result = await work();
      const counted = increaseOf(before, await readCounters(bench));
      const peakMiB = inMiB(peaks.take());
      phases.push({ name, fromSecond, toSecond: second(), peakMiB, ...counted });
      bench.log(`Highest resident memory, MiB: ${describePeaks(peakMiB)}`);
      return result;
    },
    async stop() {
      peaks.stop();
      const samples = await queryEach((service) => watches[service].stop());
      return { phases, samples, budgetsMiB };
    },
  };
}

type Counters = Pick<PhaseMemory, 'slowLane' | 'deferrals' | 'because'>;

async function readCounters({ stack }: Bench): Promise<Counters> {
  const metrics = await readMetrics(stack.opsUrlOf('dispatcher'));
  const deferrals = 'posthorn_deferrals_total';
  return {
    slowLane: metricIn(metrics, 'posthorn_slow_lane_spills_total'),
    deferrals: metricIn(metrics, deferrals),
    because: metricBy(metrics, deferrals, 'because'),
  };
}

function increaseOf(before: Counters, after: Counters): Counters {
  const because = Object.entries(after.because)
    .map(([reason, count]) => [reason, count - (before.because[reason] ?? 0)] as const)
    .filter(([, count]) => count > 0);
  return {
    slowLane: difference(before.slowLane, after.slowLane),
    deferrals: difference(before.deferrals, after.deferrals),
    because: Object.fromEntries(because),
  };
}

function difference(before: number | null, after: number | null): number | null {
  return before === null || after === null ? null : after - before;
}

function inMiB(bytes: PerService<number | null>): PerService<number | null> {
  return perService((service) => {
    const value = bytes[service];
    return value === null ? null : rounded(value / 2 ** 20);
  });
}

function describePeaks(peakMiB: PerService<number | null>): string {
  return Object.entries(peakMiB)
    .map(([service, mib]) => `${service} ${mib ?? 'not known'}`)
    .join(', ');
}

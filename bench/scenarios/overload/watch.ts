import { rounded } from '../../measure/figures.ts';
import { type PerService, perService, queryEach } from '../../measure/per-service.ts';
import { type Counts, metricBy, metricIn, readMetrics } from '../../measure/metrics.ts';
import { growthOf } from '../../measure/store-work.ts';
import {
  inMiB,
  type MemorySample,
  readBudgetsMiB,
  watchMemory,
} from '../../measure/watch-memory.ts';
import { watchPeaks } from '../../measure/watch-usage.ts';
import type { Bench } from '../../scenario.ts';

/** Of the dispatcher: attempts that moved to the slow lane or were deferred; null when the metrics could not be read. */
interface Counters {
  slowLane: number | null;
  deferrals: number | null;
  /** The deferrals by their reason. */
  because: Counts;
}

/** The memory and deferrals of one phase of the run. */
export interface PhaseMemory extends Counters {
  name: string;
  fromSecond: number;
  toSecond: number;
  /** Highest resident memory; null where it cannot be read. */
  peakMiB: PerService<number | null>;
}

export interface WatchedRun {
  phases: PhaseMemory[];
  samples: PerService<MemorySample[]>;
  /** For each part that has a budget. */
  budgetsMiB: PerService<Record<string, number>>;
}

/** Reading the metrics more often would be a considerable part of the CPU of an idle service. */
const SAMPLE_EVERY_MS = 2_000;

export type OverloadWatch = Awaited<ReturnType<typeof watchOverload>>;

/** Follows the memory of the three services through the phases of one run. */
export async function watchOverload(bench: Bench) {
  const startedAtMs = performance.now();
  const second = (): number => rounded((performance.now() - startedAtMs) / 1_000);
  const phases: PhaseMemory[] = [];
  const peaks = watchPeaks(bench.usage);
  const budgetsMiB = await queryEach((service) => readBudgetsMiB(bench.stack.opsUrlOf(service)));
  const watches = await queryEach((service) =>
    watchMemory(bench, { service, everyMs: SAMPLE_EVERY_MS }),
  );
  return {
    async during<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
      bench.signal.throwIfAborted();
      peaks.take();
      const fromSecond = second();
      const before = await readCounters(bench);
      const result = await work();
      const counted = increaseOf(before, await readCounters(bench));
      const bytes = peaks.take();
      const peakMiB = perService((service) => inMiB(bytes[service]));
      phases.push({ name, fromSecond, toSecond: second(), peakMiB, ...counted });
      const shown = Object.entries(peakMiB).map(([each, mib]) => `${each} ${mib ?? 'not known'}`);
      bench.log(`Highest resident memory, MiB: ${shown.join(', ')}`);
      return result;
    },
    async stop(): Promise<WatchedRun> {
      peaks.stop();
      const samples = await queryEach((service) => watches[service].stop());
      return { phases, samples, budgetsMiB };
    },
  };
}

/** NaN for those that cannot be read. */
async function readCounters({ stack }: Bench) {
  const metrics = await readMetrics(stack.opsUrlOf('dispatcher'));
  const deferrals = 'posthorn_deferrals_total';
  return {
    slowLane: metricIn(metrics, 'posthorn_slow_lane_spills_total') ?? NaN,
    deferrals: metricIn(metrics, deferrals) ?? NaN,
    because: metricBy(metrics, deferrals, 'because'),
  };
}

type Read = Awaited<ReturnType<typeof readCounters>>;

const increaseOf = (before: Read, after: Read): Counters => ({
  slowLane: known(after.slowLane - before.slowLane),
  deferrals: known(after.deferrals - before.deferrals),
  because: growthOf(before.because, after.because),
});

const known = (count: number): number | null => (Number.isNaN(count) ? null : count);

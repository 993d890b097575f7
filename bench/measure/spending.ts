import { readMachineCpuSeconds } from '../usage/process-usage.ts';
import { GENERATOR, type UsageWatch } from '../usage/watch-usage.ts';
import { rounded } from '../figures/percentiles.ts';
import { figuresOf, type PartFigures, type PartSecond, usageSeconds } from './usage-figures.ts';

/** The CPU and memory that a piece of work took. */
export interface Spending {
  parts: Record<string, PartFigures>;
  /** Posthorn and its stores, without the generator; null when the stores could not be read. */
  cpuSecondsPer1000: number | null;
  /**
   * Cores used by everything else on the machine, which the measured parts lack. Null where it cannot
   * be read.
   */
  otherCores: number | null;
  usage: Record<string, PartSecond[]>;
}

const STORES = ['kafka', 'mongodb', 'redis'];

/** Starts to measure. The returned function ends it, with the number of messages that the work was for. */
export function watchSpending(watch: UsageWatch): (messages: number) => Spending {
  const startedAtMs = performance.now();
  const before = watch.read();
  const machineBefore = readMachineCpuSeconds();
  return (messages) => {
    const after = watch.read();
    const machineAfter = readMachineCpuSeconds();
    const seconds = (performance.now() - startedAtMs) / 1_000;
    const parts = figuresOf({ before, after, seconds, accepted: messages });
    return {
      parts,
      cpuSecondsPer1000: sumOf(parts),
      otherCores: otherCores(machineBefore, machineAfter, parts, seconds),
      usage: usageSeconds(watch.samples, startedAtMs),
    };
  };
}

function sumOf(parts: Record<string, PartFigures>): number | null {
  if (!STORES.every((store) => store in parts)) return null;
  const sum = Object.entries(parts)
    .filter(([name]) => name !== GENERATOR)
    .reduce((total, [, part]) => total + (part.cpuSecondsPer1000 ?? 0), 0);
  return Number(sum.toFixed(3));
}

function otherCores(
  before: number | undefined,
  after: number | undefined,
  parts: Record<string, PartFigures>,
  seconds: number,
): number | null {
  if (before === undefined || after === undefined) return null;
  const ownSeconds = Object.values(parts).reduce((total, { cpuSeconds }) => total + cpuSeconds, 0);
  return rounded(Math.max(0, after - before - ownSeconds) / seconds, 2);
}

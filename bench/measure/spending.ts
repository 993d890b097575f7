import { readMachineCpuSeconds } from './process-usage.ts';
import { GENERATOR, type UsageWatch, type Usage, type UsageSample } from './watch-usage.ts';
import { rounded } from './figures.ts';

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

/** The usage of one part (gateway, kafka, …) over a phase. */
interface PartFigures {
  cpuSeconds: number;
  /** Per 1,000 accepted messages; null when none was accepted. */
  cpuSecondsPer1000: number | null;
  cores: number;
  residentMiB: number;
}

/** The usage of one part in one second. */
interface PartSecond {
  second: number;
  cores: number;
  residentMiB: number;
}

interface Span {
  before: Usage;
  after: Usage;
  seconds: number;
  accepted: number;
}

const MIB = 2 ** 20;

/** Returns the parts that existed at both ends; empty where nothing can be read. */
export function figuresOf({ before, after, seconds, accepted }: Span): Record<string, PartFigures> {
  const figures: Record<string, PartFigures> = {};
  for (const [part, { cpuSeconds: endSeconds, residentBytes }] of Object.entries(after)) {
    const start = before[part];
    if (start === undefined) continue;
    const cpuSeconds = endSeconds - start.cpuSeconds;
    figures[part] = {
      cpuSeconds: rounded(cpuSeconds, 2),
      cpuSecondsPer1000: accepted === 0 ? null : rounded((cpuSeconds * 1_000) / accepted, 3),
      cores: rounded(cpuSeconds / seconds, 2),
      residentMiB: rounded(residentBytes / MIB),
    };
  }
  return figures;
}

export function usageSeconds(
  samples: readonly UsageSample[],
  startedAtMs: number,
): Record<string, PartSecond[]> {
  const lines: Record<string, PartSecond[]> = {};
  for (const [index, { atMs, usage }] of samples.entries()) {
    const last = samples[index - 1];
    if (last === undefined || last.atMs < startedAtMs) continue;
    for (const [part, { cpuSeconds, residentBytes }] of Object.entries(usage)) {
      const used = cpuSeconds - (last.usage[part]?.cpuSeconds ?? cpuSeconds);
      (lines[part] ??= []).push({
        second: rounded((atMs - startedAtMs) / 1_000),
        cores: rounded((used * 1_000) / (atMs - last.atMs), 2),
        residentMiB: rounded(residentBytes / MIB),
      });
    }
  }
  return lines;
}

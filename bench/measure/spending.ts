import { readMachineCpuSeconds } from './process-usage.ts';
import { GENERATOR, type UsageWatch, type Usage, type UsageSample } from './watch-usage.ts';
import { rounded } from './figures.ts';

/** The CPU and memory that a piece of work took. */
export type Spending = ReturnType<ReturnType<typeof watchSpending>>;

type Parts = ReturnType<typeof figuresOf>;

const STORES = ['kafka', 'mongodb', 'redis'];

/** Starts to measure. The returned function ends it, with the number of messages that the work was for. */
export function watchSpending(watch: UsageWatch) {
  const startedAtMs = performance.now();
  const before = watch.read();
  const machineBefore = readMachineCpuSeconds();
  return (messages: number) => {
    const after = watch.read();
    const machine = readMachineCpuSeconds() - machineBefore;
    const seconds = (performance.now() - startedAtMs) / 1_000;
    const parts = figuresOf({ before, after, seconds, accepted: messages });
    const others = machine - sumOf(Object.values(parts).map(({ cpuSeconds }) => cpuSeconds));
    return {
      parts,
      /** Posthorn and its stores, without the generator; null when the stores could not be read. */
      cpuSecondsPer1000: withoutGenerator(parts),
      /** Cores used by everything else on the machine, which the measured parts lack. Null where it cannot be read. */
      otherCores: Number.isNaN(others) ? null : rounded(Math.max(0, others) / seconds, 2),
      usage: usageSeconds(watch.samples, startedAtMs),
    };
  };
}

function withoutGenerator(parts: Parts): number | null {
  if (!STORES.every((store) => store in parts)) return null;
  const measured = Object.entries(parts).filter(([name]) => name !== GENERATOR);
  return rounded(sumOf(measured.map(([, part]) => part.cpuSecondsPer1000 ?? 0)), 3);
}

const sumOf = (values: number[]): number => values.reduce((sum, value) => sum + value, 0);

interface Span {
  before: Usage;
  after: Usage;
  seconds: number;
  accepted: number;
}

const MIB = 2 ** 20;

/** Returns the parts that existed at both ends; empty where nothing can be read. */
export function figuresOf({ before, after, seconds, accepted }: Span) {
  const figures = Object.entries(after).flatMap(([part, { cpuSeconds: atEnd, residentBytes }]) => {
    const start = before[part];
    if (start === undefined) return [];
    const cpuSeconds = atEnd - start.cpuSeconds;
    const used = {
      cpuSeconds: rounded(cpuSeconds, 2),
      cpuSecondsPer1000: accepted === 0 ? null : rounded((cpuSeconds * 1_000) / accepted, 3),
      cores: rounded(cpuSeconds / seconds, 2),
      residentMiB: rounded(residentBytes / MIB),
    };
    return [[part, used] as const];
  });
  return named(figures);
}

/** Returns the usage of each part in each second. */
export function usageSeconds(samples: readonly UsageSample[], startedAtMs: number) {
  const lines = samples.flatMap(({ atMs, usage }, index) => {
    const last = samples[index - 1];
    if (last === undefined || last.atMs < startedAtMs) return [];
    return Object.entries(usage).map(([part, { cpuSeconds, residentBytes }]) => {
      const used = cpuSeconds - (last.usage[part]?.cpuSeconds ?? cpuSeconds);
      const second = rounded((atMs - startedAtMs) / 1_000);
      const cores = rounded((used * 1_000) / (atMs - last.atMs), 2);
      return { part, line: { second, cores, residentMiB: rounded(residentBytes / MIB) } };
    });
  });
  const byPart = Map.groupBy(lines, ({ part }) => part);
  return named([...byPart].map(([part, all]) => [part, all.map(({ line }) => line)] as const));
}

/** Returns an object of these entries, which may lack a name that is asked for. */
const named = <Value>(entries: (readonly [string, Value])[]): Record<string, Value> =>
  Object.fromEntries(entries);

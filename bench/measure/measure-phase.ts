import type { Arrivals } from '../load/arrivals.ts';
import type { LoadRecord } from '../load/loops.ts';
import { GENERATOR, type UsageWatch } from '../stack/watch-usage.ts';
import { readMachineCpuSeconds } from '../stack/process-usage.ts';
import { rounded } from './percentiles.ts';
import { phaseFigures, type PhaseFigures } from './phase-figures.ts';
import { untilArrived } from './until-arrived.ts';
import { figuresOf, type PartFigures, type PartSecond, usageSeconds } from './usage-figures.ts';

export interface Phase extends PhaseFigures {
  name: string;
  /** Until the last message had arrived. */
  parts: Record<string, PartFigures>;
  /** Of Posthorn and its stores, without the generator; null when the stores could not be read. */
  cpuSecondsPer1000: number | null;
  /** Of everything else on the machine: what it takes, the figures lack. null where it cannot be read. */
  otherCores: number | null;
  usage: Record<string, PartSecond[]>;
}

export interface PhaseSpec {
  name: string;
  /** Which endpoints answer, so that their messages must arrive; all unless given. */
  isCounted?: (endpoint: number) => boolean;
  load: () => Promise<LoadRecord>;
}

export type MeasurePhase = (spec: PhaseSpec) => Promise<Phase>;

interface PhaseDeps {
  arrivals: Arrivals;
  usage: UsageWatch;
  signal: AbortSignal;
  log: (line: string) => void;
}

/** Above the first retry (5 s) and its deadline (15 s): what one retry saves is late, not missing. */
const QUIET_MS = 25_000;
const PATIENCE_MS = 180_000;
const STORES = ['kafka', 'mongodb', 'redis'];

export function createPhases({ arrivals, usage, signal, log }: PhaseDeps): MeasurePhase {
  return async ({ name, load, isCounted = () => true }) => {
    log(`Measuring: ${name}`);
    arrivals.forgetAll();
    const before = usage.read();
    const machineBefore = readMachineCpuSeconds();
    const record = await load();
    const owed = record.sent.filter(({ endpoint }) => isCounted(endpoint));
    const missing = missingCounter(owed, arrivals);
    await untilArrived(missing, { quietMs: QUIET_MS, totalMs: PATIENCE_MS, signal });
    const after = usage.read();
    const machineAfter = readMachineCpuSeconds();
    const seconds = (performance.now() - record.startedAtMs) / 1_000;
    const parts = figuresOf({ before, after, seconds, accepted: record.sent.length });
    return {
      name,
      ...phaseFigures(record, arrivals, isCounted),
      parts,
      cpuSecondsPer1000: sumOf(parts),
      otherCores: otherCores(machineBefore, machineAfter, parts, seconds),
      usage: usageSeconds(usage.samples, record.startedAtMs),
    };
  };
}

/** Looks again only at those that were missing the last time. */
function missingCounter(owed: LoadRecord['sent'], arrivals: Arrivals): () => number {
  let missing = owed;
  return () => {
    missing = missing.filter(({ id, endpoint }) => arrivals.count(id, endpoint) === 0);
    return missing.length;
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

import { setTimeout as wait } from 'node:timers/promises';
import { rounded } from '../../measure/figures.ts';
import { type PerService, perService } from '../../measure/per-service.ts';
import type { Usage, UsageSample } from '../../measure/watch-usage.ts';
import type { Bench } from '../../scenario.ts';

const CHECK_EVERY_MS = 1_000;
const BASELINE_SECONDS = 10;
/** Within 20 % of the baseline. */
export const RECOVERED_WITHIN = 1.2;

/** The resident memory of each service, in bytes; null where it cannot be read. */
type Baseline = PerService<number | null>;

/** Measures the resident memory of each service at the end of this many seconds without load. */
export async function measureBaseline(bench: Bench, idleSeconds: number): Promise<Baseline> {
  bench.log(`Idle for ${idleSeconds} s, to measure the memory at the start`);
  const startedAtMs = performance.now();
  await pause(bench, idleSeconds * 1_000);
  const fromMs = Math.max(startedAtMs, performance.now() - BASELINE_SECONDS * 1_000);
  return baselineOf(bench.usage.samples, fromMs);
}

/** Returns the median of the samples since `fromMs`, so that one fetch or garbage collection does not decide it. */
export function baselineOf(samples: readonly UsageSample[], fromMs: number): Baseline {
  const late = samples.filter(({ atMs }) => atMs >= fromMs);
  return perService((service) => {
    const values = late.flatMap(({ usage }) => usage[service]?.residentBytes ?? []);
    return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? null;
  });
}

export interface RestRun {
  /** How long the rest took. */
  seconds: number;
  recoveries: PerService<Recovery | null>;
}

/** Waits without load until the memory of every service has recovered, or the time is over. */
export async function restUntilRecovered(
  bench: Bench,
  baseline: Baseline,
  maxSeconds: number,
): Promise<RestRun> {
  bench.log(`Idle for ${maxSeconds} s at most, until the memory is within 20 % of the start`);
  const startedAtMs = performance.now();
  let recoveries = perService<Recovery | null>(() => null);
  for (;;) {
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
    recoveries = recoveriesAt(recoveries, { baseline, usage: bench.usage.read(), seconds });
    const isOver = seconds >= maxSeconds || bench.signal.aborted;
    if (areRecovered(recoveries) || isOver) return { seconds, recoveries };
    await pause(bench, CHECK_EVERY_MS);
  }
}

async function pause({ signal }: Bench, ms: number): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}

/** The return of the resident memory of one service to its value at the start. */
export interface Recovery {
  baselineBytes: number;
  endBytes: number;
  /** Seconds of the rest until it had recovered for the first time; null when it never did. */
  recoveredAfterSeconds: number | null;
}

const isRecovered = ({ baselineBytes, endBytes }: Recovery): boolean =>
  endBytes <= baselineBytes * RECOVERED_WITHIN;

/** Returns true when all services whose memory can be read are recovered now. */
export const areRecovered = (recoveries: PerService<Recovery | null>): boolean =>
  Object.values(recoveries).every((each) => each === null || isRecovered(each));

/** `seconds`: how long the rest has lasted. */
export function recoveriesAt(
  before: PerService<Recovery | null>,
  { baseline, usage, seconds }: { baseline: Baseline; usage: Usage; seconds: number },
): PerService<Recovery | null> {
  return perService((service) => {
    const [last, baselineBytes] = [before[service], baseline[service]];
    const endBytes = usage[service]?.residentBytes;
    if (baselineBytes === null || endBytes === undefined) return last;
    const now = { baselineBytes, endBytes };
    const known = last?.recoveredAfterSeconds ?? null;
    const isNow = isRecovered({ ...now, recoveredAfterSeconds: null });
    return { ...now, recoveredAfterSeconds: known ?? (isNow ? seconds : null) };
  });
}

export function percentOfBaseline(recovery: Recovery | null): number | null {
  return recovery && rounded((100 * recovery.endBytes) / recovery.baselineBytes);
}

/** Even a run that is late waits this long, so that its last figures are meaningful. */
const MIN_SECONDS = 15;

export type TimeLeft = ReturnType<typeof createTimeLeft>;

/** Divides the time of a run among its parts that wait for something. */
export function createTimeLeft(runSeconds: number, nowMs: () => number) {
  const endMs = nowMs() + runSeconds * 1_000;
  return {
    /** Returns `seconds`, or the time that is left of the run without `laterSeconds` if that is less; at least 15. */
    atMost(seconds: number, laterSeconds: number): number {
      const leftSeconds = (endMs - nowMs()) / 1_000 - laterSeconds;
      return Math.round(Math.min(seconds, Math.max(MIN_SECONDS, leftSeconds)));
    },
  };
}

import { setTimeout as wait } from 'node:timers/promises';
import type { Bench } from '../../scenario.ts';
import { type PerService, perService } from '../../measure/per-service.ts';
import type { Usage, UsageSample } from '../../measure/watch-usage.ts';
import { rounded } from '../../measure/figures.ts';

const CHECK_EVERY_MS = 1_000;
const BASELINE_SECONDS = 10;

/** Measures the resident memory of each service at the end of this many seconds without load. */
export async function measureBaseline(bench: Bench, idleSeconds: number): Promise<Baseline> {
  bench.log(`Idle for ${idleSeconds} s, to measure the memory at the start`);
  const startedAtMs = performance.now();
  await pause(bench, idleSeconds * 1_000);
  const fromMs = Math.max(startedAtMs, performance.now() - BASELINE_SECONDS * 1_000);
  return baselineOf(bench.usage.samples, fromMs);
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
  const watch = watchRecovery(baseline);
  for (;;) {
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
    const isRecovered = watch.record(bench.usage.read(), seconds);
    if (isRecovered || seconds >= maxSeconds || bench.signal.aborted) {
      return { seconds, recoveries: watch.result() };
    }
    await pause(bench, CHECK_EVERY_MS);
  }
}

async function pause({ signal }: Bench, ms: number): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}

/** The return of the resident memory of one service to its value at the start. */
interface Recovery {
  baselineBytes: number;
  endBytes: number;
  /** Seconds of the rest until it had recovered for the first time; null when it never did. */
  recoveredAfterSeconds: number | null;
}

/** Null where memory cannot be read. */
type Baseline = PerService<number | null>;

/** Within 20 % of the baseline. */
export const RECOVERED_WITHIN = 1.2;

/**
 * Returns the median of the samples since `fromMs`, so that one fetch or garbage collection does not
 * decide it.
 */
export function baselineOf(samples: readonly UsageSample[], fromMs: number): Baseline {
  const late = samples.filter(({ atMs }) => atMs >= fromMs);
  return perService((service) => {
    const values = late.flatMap(({ usage }) => usage[service]?.residentBytes ?? []);
    return medianOf(values);
  });
}

function medianOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}

interface RecoveryWatch {
  /**
   * Records the resident memory this many seconds into the rest. Returns true when all services are
   * recovered now.
   */
  record: (usage: Usage, seconds: number) => boolean;
  result: () => PerService<Recovery | null>;
}

export function watchRecovery(baseline: Baseline): RecoveryWatch {
  let recoveries = perService<Recovery | null>(() => null);
  return {
    record(usage, seconds) {
      recoveries = perService((service) =>
        recoveryAt(recoveries[service], baseline[service], usage[service]?.residentBytes, seconds),
      );
      return Object.values(recoveries).every((each) => each === null || isRecovered(each));
    },
    result: () => recoveries,
  };
}

function recoveryAt(
  before: Recovery | null,
  baselineBytes: number | null,
  endBytes: number | undefined,
  seconds: number,
): Recovery | null {
  if (baselineBytes === null || endBytes === undefined) return before;
  const recoveredAfterSeconds = before?.recoveredAfterSeconds ?? null;
  const now = { baselineBytes, endBytes, recoveredAfterSeconds };
  return recoveredAfterSeconds === null && isRecovered(now)
    ? { ...now, recoveredAfterSeconds: seconds }
    : now;
}

function isRecovered({ baselineBytes, endBytes }: Recovery): boolean {
  return endBytes <= baselineBytes * RECOVERED_WITHIN;
}

export function percentOfBaseline(recovery: Recovery | null): number | null {
  if (!recovery) return null;
  return rounded((100 * recovery.endBytes) / recovery.baselineBytes);
}

/** Divides the time of a run among its parts that wait for something. */
export interface TimeLeft {
  /** Returns `seconds`, or the time that is left of the run without `laterSeconds` if that is less; at least 15. */
  atMost: (seconds: number, laterSeconds: number) => number;
}

/** Even a run that is late waits this long, so that its last figures are meaningful. */
const MIN_SECONDS = 15;

export function createTimeLeft(runSeconds: number, nowMs: () => number): TimeLeft {
  const endMs = nowMs() + runSeconds * 1_000;
  return {
    atMost(seconds, laterSeconds) {
      const leftSeconds = (endMs - nowMs()) / 1_000 - laterSeconds;
      return Math.round(Math.min(seconds, Math.max(MIN_SECONDS, leftSeconds)));
    },
  };
}

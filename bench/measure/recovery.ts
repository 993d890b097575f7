import { type PerService, perService } from '../usage/per-service.ts';
import type { Usage, UsageSample } from '../usage/watch-usage.ts';
import { rounded } from '../figures/percentiles.ts';

/** How the resident memory of one service returned to what it was at the start. */
export interface Recovery {
  baselineBytes: number;
  endBytes: number;
  /** Seconds of the rest until it had recovered for the first time; null when it never did. */
  recoveredAfterSeconds: number | null;
}

/** Null where memory cannot be read. */
export type Baseline = PerService<number | null>;

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

export interface RecoveryWatch {
  /**
   * Records the resident memory this many seconds into the rest. Returns true when all services are
   * recovered now.
   */
  look: (usage: Usage, seconds: number) => boolean;
  result: () => PerService<Recovery | null>;
}

export function watchRecovery(baseline: Baseline): RecoveryWatch {
  let recoveries = perService<Recovery | null>(() => null);
  return {
    look(usage, seconds) {
      recoveries = perService((service) =>
        lookedAt(recoveries[service], baseline[service], usage[service]?.residentBytes, seconds),
      );
      return Object.values(recoveries).every((each) => each === null || isRecovered(each));
    },
    result: () => recoveries,
  };
}

function lookedAt(
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

export function isRecovered({ baselineBytes, endBytes }: Recovery): boolean {
  return endBytes <= baselineBytes * RECOVERED_WITHIN;
}

export function percentOfBaseline(recovery: Recovery | null): number | null {
  if (!recovery) return null;
  return rounded((100 * recovery.endBytes) / recovery.baselineBytes);
}

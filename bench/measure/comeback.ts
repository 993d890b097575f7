import { type PerService, perService } from '../stack/per-service.ts';
import type { Usage, UsageSample } from '../stack/watch-usage.ts';
import { rounded } from './percentiles.ts';

/** How the resident memory of one service came back to what it was at the start. */
export interface Comeback {
  baselineBytes: number;
  endBytes: number;
  /** Of the rest until it was back for the first time; null when it never was. */
  backAfterSeconds: number | null;
}

/** Null where memory cannot be read. */
export type Baseline = PerService<number | null>;

/** Within 20 % of the baseline. */
export const BACK_WITHIN = 1.2;

/** The median of the samples since `fromMs`, so that one fetch or collection does not make the baseline. */
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

export interface ComebackWatch {
  /** Notes what is resident so many seconds into the rest. True when all are back at this moment. */
  look: (usage: Usage, seconds: number) => boolean;
  result: () => PerService<Comeback | null>;
}

export function watchComeback(baseline: Baseline): ComebackWatch {
  let comebacks = perService<Comeback | null>(() => null);
  return {
    look(usage, seconds) {
      comebacks = perService((service) =>
        lookedAt(comebacks[service], baseline[service], usage[service]?.residentBytes, seconds),
      );
      return Object.values(comebacks).every((each) => each === null || isBack(each));
    },
    result: () => comebacks,
  };
}

function lookedAt(
  before: Comeback | null,
  baselineBytes: number | null,
  endBytes: number | undefined,
  seconds: number,
): Comeback | null {
  if (baselineBytes === null || endBytes === undefined) return before;
  const backAfterSeconds = before?.backAfterSeconds ?? null;
  const now = { baselineBytes, endBytes, backAfterSeconds };
  return backAfterSeconds === null && isBack(now) ? { ...now, backAfterSeconds: seconds } : now;
}

export function isBack({ baselineBytes, endBytes }: Comeback): boolean {
  return endBytes <= baselineBytes * BACK_WITHIN;
}

export function percentOfBaseline(comeback: Comeback | null): number | null {
  if (!comeback) return null;
  return rounded((100 * comeback.endBytes) / comeback.baselineBytes);
}

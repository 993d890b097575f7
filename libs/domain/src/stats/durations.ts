import { attemptsIn, DURATION_BOUNDS_MS, type AttemptCounts } from './attempt-counts.ts';

/** How long attempts took, in whole milliseconds. The percentiles are estimates from buckets. */
export interface DurationFigures {
  mean: number;
  max: number;
  p50: number;
  p95: number;
  p99: number;
}

type Counted = Pick<AttemptCounts, 'outcomes' | 'durations' | 'durationMs' | 'maxDurationMs'>;

/** Null when there was no attempt. */
export function durationFiguresOf(counts: Counted): DurationFigures | null {
  const attempts = attemptsIn(counts);
  if (attempts === 0) return null;
  const percentile = (share: number): number => Math.round(percentileMs(counts, attempts * share));
  return {
    mean: Math.round(counts.durationMs / attempts),
    max: Math.round(counts.maxDurationMs),
    p50: percentile(0.5),
    p95: percentile(0.95),
    p99: percentile(0.99),
  };
}

/**
 * The duration below which `rank` attempts were, as if those of each bucket were spread evenly over it. No
 * estimate is above the longest duration, which is known.
 */
function percentileMs({ durations, maxDurationMs }: Counted, rank: number): number {
  let below = 0;
  let lowerMs = 0;
  for (const [index, upperMs] of DURATION_BOUNDS_MS.entries()) {
    const inBucket = durations[index] ?? 0;
    if (inBucket > 0 && below + inBucket >= rank) {
      const estimateMs = lowerMs + ((upperMs - lowerMs) * (rank - below)) / inBucket;
      return Math.min(estimateMs, maxDurationMs);
    }
    below += inBucket;
    lowerMs = upperMs;
  }
  return maxDurationMs;
}

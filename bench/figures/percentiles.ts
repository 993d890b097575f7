/** Milliseconds, by nearest rank; null where nothing was measured. */
export interface Percentiles {
  count: number;
  p50: number | null;
  p90: number | null;
  p99: number | null;
  p999: number | null;
  max: number | null;
}

export function percentilesOf(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort();
  return {
    count: sorted.length,
    p50: nearestRank(sorted, 0.5),
    p90: nearestRank(sorted, 0.9),
    p99: nearestRank(sorted, 0.99),
    p999: nearestRank(sorted, 0.999),
    max: nearestRank(sorted, 1),
  };
}

function nearestRank(sorted: Float64Array, share: number): number | null {
  // 0.999 * 1,000 is 999.0000000000001 in floating point, whose ceiling would be the next rank.
  const rank = Math.ceil(Number((sorted.length * share).toFixed(6)));
  const value = sorted[Math.max(0, rank - 1)];
  return value === undefined ? null : rounded(value);
}

/** One decimal by default: the clock of the generator is not more precise. */
export function rounded(value: number, decimals = 1): number {
  return Number(value.toFixed(decimals));
}

import type { LoadResult } from './load.ts';

export function printReport(result: LoadResult, seconds: number): void {
  const { accepted, refused, missing, acceptMs, endToEndMs } = result;
  console.table([
    {
      'accepted/s': Math.round(accepted / seconds),
      refused,
      missing,
      'accept p50 ms': percentile(acceptMs, 0.5),
      'accept p99 ms': percentile(acceptMs, 0.99),
      'end to end p50 ms': percentile(endToEndMs, 0.5),
      'end to end p99 ms': percentile(endToEndMs, 0.99),
    },
  ]);
}

/** Nearest rank, one decimal; NaN for an empty list. */
function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
  return Math.round(value * 10) / 10;
}

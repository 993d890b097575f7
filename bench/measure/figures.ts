export type Percentiles = ReturnType<typeof percentilesOf>;

/** By nearest rank; null without a measurement. */
export function percentilesOf(values: readonly number[]) {
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

/** Null when none is known. */
export function highestOf(values: readonly (number | null | undefined)[]): number | null {
  const known = values.filter((value) => typeof value === 'number');
  return known.length === 0 ? null : Math.max(...known);
}

/** The times of one message, by `performance.now`. */
interface Timeline {
  /** When it was to be sent. Latencies count from here, even when the generator was late. */
  intendedAtMs: number;
  acceptedAtMs: number;
  /** First arrival at its endpoint; undefined when it has not arrived. */
  arrivedAtMs: number | undefined;
}

/** Returns one entry per second, from the start of the phase to its last event, without gaps. */
export function secondsOf(timelines: readonly Timeline[], startedAtMs: number) {
  const buckets: ReturnType<typeof emptyBucket>[] = [];
  const at = (timeMs: number) => {
    const second = Math.max(0, Math.floor((timeMs - startedAtMs) / 1_000));
    while (buckets.length <= second) buckets.push(emptyBucket());
    return buckets[second] ?? emptyBucket();
  };
  for (const { intendedAtMs, acceptedAtMs, arrivedAtMs } of timelines) {
    at(acceptedAtMs).accepted += 1;
    at(intendedAtMs).acceptMs.push(acceptedAtMs - intendedAtMs);
    if (arrivedAtMs === undefined) continue;
    at(arrivedAtMs).delivered += 1;
    at(intendedAtMs).endToEndMs.push(arrivedAtMs - intendedAtMs);
  }
  return buckets.map(({ acceptMs, endToEndMs, ...counts }, second) => ({
    second,
    ...counts,
    /** Of the messages that were to be sent in this second. */
    acceptMs: p50AndP99(acceptMs),
    endToEndMs: p50AndP99(endToEndMs),
  }));
}

const emptyBucket = () => ({
  accepted: 0,
  delivered: 0,
  acceptMs: [] as number[],
  endToEndMs: [] as number[],
});

function p50AndP99(values: readonly number[]) {
  const { p50, p99 } = percentilesOf(values);
  return { p50, p99 };
}

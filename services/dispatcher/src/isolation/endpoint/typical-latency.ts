/** What is known about the latency of an endpoint. All times are monotonic milliseconds. */
export interface TypicalLatency {
  /** The lowest typical latency of this period, and of the previous one. */
  readonly lowestMs: number;
  readonly lowestBeforeMs: number;
  readonly periodSinceMs: number;
  /** The minimum of the last complete group of samples, and of the current one. */
  readonly lastGroupMs: number;
  readonly groupMs: number;
  readonly groupSize: number;
  /** The round trip that is being watched: its start, the number of its samples and their sum. */
  readonly sinceMs: number;
  readonly samples: number;
  readonly sumMs: number;
  /** The number of its complete groups, and the sum of their minima. */
  readonly groups: number;
  readonly minimaSumMs: number;
  /** The highest number of attempts that were under way at once in it. */
  readonly peak: number;
}

/**
 * The typical latency is the mean of the minima of groups of eight samples. A stall of this process or
 * a slow request raises few of the minima, a queue at the endpoint raises all of them. The minimum of a
 * whole round trip would fall as round trips get more samples, and one quick response would decide it.
 */
const GROUP_SIZE = 8;
/**
 * How long a round trip is watched: two mean latencies, and at least 100 ms. A usual stall of this
 * process takes 50 to 100 ms, and a shorter watch could see nothing else. Of attempts that started
 * together the slow ones end last, and within one mean latency they could be all that is seen.
 */
const WATCH = { ms: 100, means: 2 };
/**
 * 1.5 is the tolerance of Gradient2 (Netflix concurrency-limits). Below 50 ms it may all be noise of
 * this process.
 */
const TOLERANCE = { factor: 1.5, ms: 50 };
/**
 * The lowest counts for 30 to 60 s. In that time a decrease of the limit empties the queue, and it is
 * measured again.
 */
const PERIOD_MS = 30_000;

export const NO_LATENCY: TypicalLatency = {
  lowestMs: Infinity,
  lowestBeforeMs: Infinity,
  periodSinceMs: -Infinity,
  lastGroupMs: Infinity,
  groupMs: Infinity,
  groupSize: 0,
  sinceMs: Infinity,
  samples: 0,
  sumMs: 0,
  groups: 0,
  minimaSumMs: 0,
  peak: 0,
};

/** Returns the latency when nothing queues at the endpoint; Infinity before it is known. */
export function baseOf({ lowestMs, lowestBeforeMs }: TypicalLatency): number {
  return Math.min(lowestMs, lowestBeforeMs);
}

export function toleratedMs(latency: TypicalLatency): number {
  const baseMs = baseOf(latency);
  return Math.max(baseMs * TOLERANCE.factor, baseMs + TOLERANCE.ms);
}

/** Returns whether the last 8 to 16 samples show no queue. */
export function isNearBase(latency: TypicalLatency): boolean {
  return Math.min(latency.lastGroupMs, latency.groupMs) <= toleratedMs(latency);
}

export function withSample(
  latency: TypicalLatency,
  { startedMs, endedMs, running }: { startedMs: number; endedMs: number; running: number },
): TypicalLatency {
  const tookMs = endedMs - startedMs;
  const groupMs = Math.min(latency.groupMs, tookMs);
  const isComplete = latency.groupSize + 1 >= GROUP_SIZE;
  return {
    lowestMs: latency.lowestMs,
    lowestBeforeMs: latency.lowestBeforeMs,
    periodSinceMs: latency.periodSinceMs,
    lastGroupMs: isComplete ? groupMs : latency.lastGroupMs,
    groupMs: isComplete ? Infinity : groupMs,
    groupSize: isComplete ? 0 : latency.groupSize + 1,
    sinceMs: Math.min(latency.sinceMs, endedMs),
    samples: latency.samples + 1,
    sumMs: latency.sumMs + tookMs,
    groups: isComplete ? latency.groups + 1 : latency.groups,
    minimaSumMs: isComplete ? latency.minimaSumMs + groupMs : latency.minimaSumMs,
    peak: Math.max(latency.peak, running),
  };
}

/** Returns the typical latency of the round trip that is being watched; null while it is not over. */
export function typicalMs(latency: TypicalLatency, nowMs: number): number | null {
  const { sinceMs, samples, sumMs, groups, minimaSumMs } = latency;
  const watchMs = Math.max(WATCH.ms, (WATCH.means * sumMs) / Math.max(1, samples));
  return groups === 0 || nowMs - sinceMs < watchMs ? null : minimaSumMs / groups;
}

/** Ends a round trip, and keeps the lowest of the last two periods. */
export function withTypical(latency: TypicalLatency, ms: number, nowMs: number): TypicalLatency {
  const isOver = nowMs - latency.periodSinceMs >= PERIOD_MS;
  return {
    ...watchAgain(latency),
    lowestMs: isOver ? ms : Math.min(latency.lowestMs, ms),
    lowestBeforeMs: isOver ? latency.lowestMs : latency.lowestBeforeMs,
    periodSinceMs: isOver ? nowMs : latency.periodSinceMs,
  };
}

/** Ends a round trip, and forgets everything lower that was measured before. */
export function withNewBase(latency: TypicalLatency, ms: number, nowMs: number): TypicalLatency {
  return {
    ...watchAgain(latency),
    lowestMs: ms,
    lowestBeforeMs: Infinity,
    periodSinceMs: nowMs,
  };
}

/** Starts to watch the next round trip. */
export function watchAgain(latency: TypicalLatency): TypicalLatency {
  return {
    ...NO_LATENCY,
    lowestMs: latency.lowestMs,
    lowestBeforeMs: latency.lowestBeforeMs,
    periodSinceMs: latency.periodSinceMs,
  };
}

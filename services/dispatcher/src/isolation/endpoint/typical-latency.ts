/** What is known of an endpoint's latency. All times are milliseconds, on the monotonic clock. */
export interface TypicalLatency {
  /** The lowest typical latency of this period, and of the one before. */
  readonly lowestMs: number;
  readonly lowestBeforeMs: number;
  readonly periodSinceMs: number;
  /** The least of the last complete group, and of the one that is being filled. */
  readonly lastGroupMs: number;
  readonly groupMs: number;
  readonly groupSize: number;
  /** The round trip that is being watched: since when, its samples and the sum of them. */
  readonly sinceMs: number;
  readonly samples: number;
  readonly sumMs: number;
  /** Its complete groups, and the sum of the least of each. */
  readonly groups: number;
  readonly leastSumMs: number;
  /** The most attempts that were under way at once in it. */
  readonly peak: number;
}

/**
 * The typical latency is the mean of the least of each eight samples. A stall of our own process or a
 * slow request raises few of these, a queue at the endpoint raises all of them. The least of a whole
 * round trip would fall as the round trips get more samples, and one quick answer would settle it.
 */
const GROUP_SIZE = 8;
/**
 * How long a round trip is watched. The usual stall of our own process is 50 to 100 ms: a shorter watch
 * could see nothing else. Of attempts that began together the slow ones end last: over one mean latency
 * they could be all that is seen.
 */
const WATCH = { ms: 100, means: 2 };
/** 1.5 is the tolerance of Gradient2 (Netflix concurrency-limits); below 50 ms all may be our own noise. */
const TOLERANCE = { factor: 1.5, ms: 50 };
/** The lowest counts for 30 to 60 s. Every retreat empties the queue, so it is measured anew in that time. */
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
  leastSumMs: 0,
  peak: 0,
};

/** The latency when nothing waits at the endpoint; Infinity before it is known. */
export function baseOf({ lowestMs, lowestBeforeMs }: TypicalLatency): number {
  return Math.min(lowestMs, lowestBeforeMs);
}

export function toleratedMs(latency: TypicalLatency): number {
  const baseMs = baseOf(latency);
  return Math.max(baseMs * TOLERANCE.factor, baseMs + TOLERANCE.ms);
}

/** Whether the last 8 to 16 samples show no queue. */
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
    leastSumMs: isComplete ? latency.leastSumMs + groupMs : latency.leastSumMs,
    peak: Math.max(latency.peak, running),
  };
}

/** The typical latency of the round trip that is over now; null before. */
export function typicalMs(latency: TypicalLatency, nowMs: number): number | null {
  const { sinceMs, samples, sumMs, groups, leastSumMs } = latency;
  const watchMs = Math.max(WATCH.ms, (WATCH.means * sumMs) / Math.max(1, samples));
  return groups === 0 || nowMs - sinceMs < watchMs ? null : leastSumMs / groups;
}

/** After a round trip: keeps the lowest of the last two periods. */
export function withTypical(latency: TypicalLatency, ms: number, nowMs: number): TypicalLatency {
  const isOver = nowMs - latency.periodSinceMs >= PERIOD_MS;
  return {
    ...watchAgain(latency),
    lowestMs: isOver ? ms : Math.min(latency.lowestMs, ms),
    lowestBeforeMs: isOver ? latency.lowestMs : latency.lowestBeforeMs,
    periodSinceMs: isOver ? nowMs : latency.periodSinceMs,
  };
}

/** What was measured before is not that of this endpoint any more. */
export function withNewBase(latency: TypicalLatency, ms: number, nowMs: number): TypicalLatency {
  return {
    ...watchAgain(latency),
    lowestMs: ms,
    lowestBeforeMs: Infinity,
    periodSinceMs: nowMs,
  };
}

export function watchAgain(latency: TypicalLatency): TypicalLatency {
  return {
    ...NO_LATENCY,
    lowestMs: latency.lowestMs,
    lowestBeforeMs: latency.lowestBeforeMs,
    periodSinceMs: latency.periodSinceMs,
  };
}

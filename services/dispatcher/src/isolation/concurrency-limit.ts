/** Attempts at once. */
export interface LimitBounds {
  /** The lowest limit. Only 429, 503 and timeouts take it below `start`. */
  floor: number;
  /** The limit of a new endpoint. Latency alone never takes it lower. */
  start: number;
  ceiling: number;
}

export interface ConcurrencyLimit {
  /** `Math.floor(value)` attempts at once are allowed. */
  readonly value: number;
  /** Below it growth is exponential (ssthresh of RFC 5681); Infinity until the first decrease. */
  readonly slowStartThreshold: number;
  /**
   * The last decrease (monotonic, milliseconds). Attempts that started before it do not show the effect
   * of it.
   */
  readonly decreasedMs: number;
  /** Whether an attempt that started after the last decrease has succeeded. */
  readonly hasSucceeded: boolean;
  readonly congestion: CongestionShare;
  readonly latency: TypicalLatency;
}

export interface EndedAttempt {
  /** congested: 429, 503 or a timeout. neutral: any other failure. */
  verdict: 'success' | 'congested' | 'neutral';
  /** Monotonic clock, milliseconds. */
  startedMs: number;
  endedMs: number;
  /** Attempts under way to the endpoint when it ended, itself included. */
  running: number;
  /** Attempts wait for a slot because of this limit. */
  isLimited: boolean;
}

/** For each success: half of slow start (RFC 5681), because a queue shows only one round trip later. */
const FAST_GROWTH = 0.5;
/**
 * Near the limit that failed: one slot or 1 %, per second or round trip, whichever is longer. An
 * endpoint that takes 10 at once for 50 ms refused 8 % with one slot per round trip (RFC 5681), and
 * 1.4 % with this.
 */
const GENTLE = { share: 0.01, ms: 1_000 };
/**
 * This far beyond it, the endpoint must have changed: 10 % per 200 ms or round trip, whichever is
 * longer. Per round trip, an endpoint whose latency rises from 20 ms had 90 % of its throughput, not 94 %.
 */
const PROBING = { fromShare: 1.25, share: 0.1, ms: 200 };
/**
 * The share kept at a decrease. CUBIC (RFC 9438) keeps 0.7; RFC 5681 halves, which is right when
 * nothing gets through.
 */
const KEPT = { afterSuccess: 0.7, afterNone: 0.5 };
/** Exponential growth ends at this share of the limit that failed, and at least one slot below it. */
const THRESHOLD_SHARE = 0.9;
/**
 * Gradient2 takes off at most half at once. Another tenth goes, so that the queue at the endpoint
 * empties. The threshold is so low that the limit is probed at once: latency tells in time when it is
 * too high, and what raised it is often no queue. With gentle growth, an endpoint of 200 ms on a machine
 * that is busy for half a second in five had 17,000 attempts waiting at 900/s; now none.
 */
const GRADIENT = { lowest: 0.5, drain: 0.9, threshold: 0.75 };

export function initialLimit(bounds: LimitBounds): ConcurrencyLimit {
  return {
    value: within(bounds.start, bounds),
    slowStartThreshold: Infinity,
    decreasedMs: -Infinity,
    hasSucceeded: false,
    congestion: NO_CONGESTION,
    latency: NO_LATENCY,
  };
}

/** The part of a limit that the next owner of the endpoint begins with. */
export interface HandedOverLimit {
  value: number;
  /** Null until the first decrease. */
  slowStartThreshold: number | null;
  /** The latency when nothing queues at the endpoint; null before it is known. */
  lowestMs: number | null;
}

export function handOverLimit({
  value,
  slowStartThreshold,
  latency,
}: ConcurrencyLimit): HandedOverLimit {
  return {
    value,
    slowStartThreshold: finiteOrNull(slowStartThreshold),
    lowestMs: finiteOrNull(baseOf(latency)),
  };
}

const finiteOrNull = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** A limit that was handed over stays within our own bounds. */
export function inheritedLimit(
  { value, slowStartThreshold, lowestMs }: HandedOverLimit,
  bounds: LimitBounds,
  nowMs: number,
): ConcurrencyLimit {
  return {
    ...initialLimit(bounds),
    value: within(value, bounds),
    slowStartThreshold: slowStartThreshold ?? Infinity,
    latency: lowestMs === null ? NO_LATENCY : withNewBase(NO_LATENCY, lowestMs, nowMs),
  };
}

/**
 * Returns the limit after an attempt has ended. It grows as in TCP (RFC 5681), decreases for refusals
 * once per round trip (AIMD), and decreases for latency by the ratio of the lowest to the current one
 * (Gradient2 of Netflix concurrency-limits).
 */
export function limitAfter(
  limit: ConcurrencyLimit,
  ended: EndedAttempt,
  bounds: LimitBounds,
): ConcurrencyLimit {
  const isRelevant = isMeasured(ended) && ended.startedMs > limit.decreasedMs;
  if (!isRelevant || ended.verdict === 'neutral') return clamped(limit, bounds);
  return ended.verdict === 'congested'
    ? afterCongestion(limit, ended, bounds)
    : afterSuccess(limit, ended, bounds);
}

function isMeasured({ startedMs, endedMs, running }: EndedAttempt): boolean {
  return Number.isFinite(endedMs - startedMs) && endedMs >= startedMs && Number.isFinite(running);
}

function clamped(limit: ConcurrencyLimit, bounds: LimitBounds): ConcurrencyLimit {
  const value = within(limit.value, bounds);
  return value === limit.value ? limit : { ...limit, value };
}

function within(value: number, { floor, ceiling }: LimitBounds): number {
  return Math.max(floor, Math.min(value, ceiling));
}

function afterCongestion(
  limit: ConcurrencyLimit,
  { endedMs }: EndedAttempt,
  bounds: LimitBounds,
): ConcurrencyLimit {
  const { value, hasSucceeded } = limit;
  const congestion = withAttempt(limit.congestion, true, isBelowThreshold(limit));
  const known: ConcurrencyLimit = { ...clamped(limit, bounds), congestion };
  if (!isUnusual(congestion)) return known;
  const kept = value * (hasSucceeded ? KEPT.afterSuccess : KEPT.afterNone);
  // While nothing succeeds the threshold stays: after an outage the limit is soon back where it was.
  const slowStartThreshold = hasSucceeded
    ? Math.min(value * THRESHOLD_SHARE, value - 1)
    : limit.slowStartThreshold;
  return decrease(known, { value: within(kept, bounds), slowStartThreshold, nowMs: endedMs });
}

/** Whether the limit is below the one that failed. Before the first decrease none has failed. */
function isBelowThreshold({ value, slowStartThreshold }: ConcurrencyLimit): boolean {
  return value < slowStartThreshold && slowStartThreshold < Infinity;
}

function decrease(
  limit: ConcurrencyLimit,
  {
    value,
    slowStartThreshold,
    nowMs,
  }: { value: number; slowStartThreshold: number; nowMs: number },
): ConcurrencyLimit {
  return {
    value,
    slowStartThreshold,
    decreasedMs: nowMs,
    hasSucceeded: false,
    congestion: { recent: 0, usual: limit.congestion.usual },
    latency: watchAgain(limit.latency),
  };
}

function afterSuccess(
  limit: ConcurrencyLimit,
  ended: EndedAttempt,
  bounds: LimitBounds,
): ConcurrencyLimit {
  const latency = withSample(limit.latency, ended);
  const isFull = ended.isLimited && isUsed(limit.value, ended.running);
  const growth = isFull && isNearBase(latency) ? growthOf(limit, ended) : 0;
  const grown: ConcurrencyLimit = {
    value: within(limit.value + growth, bounds),
    slowStartThreshold: limit.slowStartThreshold,
    decreasedMs: limit.decreasedMs,
    hasSucceeded: true,
    congestion: withAttempt(limit.congestion, false, isBelowThreshold(limit)),
    latency,
  };
  const ms = typicalMs(latency, ended.endedMs);
  return ms === null ? grown : afterRoundTrip(grown, ms, ended, bounds);
}

/** Returns the growth for one success. A round trip brings about `value` successes. */
function growthOf(
  { value, slowStartThreshold }: ConcurrencyLimit,
  { startedMs, endedMs }: EndedAttempt,
): number {
  if (value < slowStartThreshold) return FAST_GROWTH;
  const tookMs = endedMs - startedMs;
  if (value > slowStartThreshold * PROBING.fromShare) {
    return PROBING.share * Math.min(1, tookMs / PROBING.ms);
  }
  return Math.max(1 / value, GENTLE.share) * Math.min(1, tookMs / GENTLE.ms);
}

function afterRoundTrip(
  limit: ConcurrencyLimit,
  ms: number,
  { endedMs, running }: EndedAttempt,
  bounds: LimitBounds,
): ConcurrencyLimit {
  const { value, slowStartThreshold, latency } = limit;
  // When few attempts of many are left (a pause, the end of a burst), only the slow ones are seen.
  if (running * 2 < latency.peak) return { ...limit, latency: watchAgain(latency) };
  const isSlow = ms > toleratedMs(latency);
  // With this few attempts at once, nothing queues at the endpoint: the latency is its own.
  if (latency.peak <= bounds.start) {
    const relearned = withNewBase(latency, ms, endedMs);
    return {
      ...limit,
      slowStartThreshold: isSlow ? Infinity : slowStartThreshold,
      latency: relearned,
    };
  }
  if (!isSlow || !isUsed(value, running)) {
    return { ...limit, latency: withTypical(latency, ms, endedMs) };
  }
  const share = Math.max(GRADIENT.lowest, (GRADIENT.drain * baseOf(latency)) / ms);
  const fitting = Math.max(bounds.start, Math.min(value, latency.peak) * share);
  const kept = within(Math.min(fitting, value), bounds);
  return decrease(limit, {
    value: kept,
    slowStartThreshold: kept * GRADIENT.threshold,
    nowMs: endedMs,
  });
}

/** A limit that is more than half free is not the bottleneck (as in Netflix concurrency-limits). */
function isUsed(value: number, running: number): boolean {
  return running * 2 >= value;
}

/** The share of attempts that ended with 429, 503 or a timeout, from 0 to 1. */
interface CongestionShare {
  /** Since the last decrease of the limit. */
  readonly recent: number;
  /** Over a longer time, of the attempts made below the limit that failed. */
  readonly usual: number;
}

/**
 * A decrease needs 3 % (the second refusal in a row, or in about sixty attempts) beyond three times
 * the usual share. With a decrease for each refusal, 1 % of 503 unrelated to load left 17 % of the
 * throughput. A share above 10 % is never usual.
 */
const UNUSUAL = { share: 0.03, timesUsual: 3, usualAtMost: 0.1 };
/** The moving averages reach over about 64 and 128 attempts. */
const WEIGHT = { recent: 1 / 64, usual: 1 / 128 };

const NO_CONGESTION: CongestionShare = { recent: 0, usual: 0 };

/** `isBelow`: the limit is below the one that failed, so that a refusal is not due to the limit. */
function withAttempt(
  { recent, usual }: CongestionShare,
  isCongested: boolean,
  isBelow: boolean,
): CongestionShare {
  const target = isCongested ? 1 : 0;
  return {
    recent: recent + (target - recent) * WEIGHT.recent,
    usual: isBelow ? usual + (target - usual) * WEIGHT.usual : usual,
  };
}

function isUnusual({ recent, usual }: CongestionShare): boolean {
  return recent > UNUSUAL.share + UNUSUAL.timesUsual * Math.min(usual, UNUSUAL.usualAtMost);
}

/** The latency of an endpoint, as far as it was learned. All times are monotonic milliseconds. */
interface TypicalLatency {
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

const NO_LATENCY: TypicalLatency = {
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
function baseOf({ lowestMs, lowestBeforeMs }: TypicalLatency): number {
  return Math.min(lowestMs, lowestBeforeMs);
}

function toleratedMs(latency: TypicalLatency): number {
  const baseMs = baseOf(latency);
  return Math.max(baseMs * TOLERANCE.factor, baseMs + TOLERANCE.ms);
}

/** Returns whether the last 8 to 16 samples show no queue. */
function isNearBase(latency: TypicalLatency): boolean {
  return Math.min(latency.lastGroupMs, latency.groupMs) <= toleratedMs(latency);
}

function withSample(
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
function typicalMs(latency: TypicalLatency, nowMs: number): number | null {
  const { sinceMs, samples, sumMs, groups, minimaSumMs } = latency;
  const watchMs = Math.max(WATCH.ms, (WATCH.means * sumMs) / Math.max(1, samples));
  return groups === 0 || nowMs - sinceMs < watchMs ? null : minimaSumMs / groups;
}

/** Ends a round trip, and keeps the lowest of the last two periods. */
function withTypical(latency: TypicalLatency, ms: number, nowMs: number): TypicalLatency {
  const isOver = nowMs - latency.periodSinceMs >= PERIOD_MS;
  return {
    ...watchAgain(latency),
    lowestMs: isOver ? ms : Math.min(latency.lowestMs, ms),
    lowestBeforeMs: isOver ? latency.lowestMs : latency.lowestBeforeMs,
    periodSinceMs: isOver ? nowMs : latency.periodSinceMs,
  };
}

/** Ends a round trip, and forgets everything lower that was measured before. */
function withNewBase(latency: TypicalLatency, ms: number, nowMs: number): TypicalLatency {
  return {
    ...watchAgain(latency),
    lowestMs: ms,
    lowestBeforeMs: Infinity,
    periodSinceMs: nowMs,
  };
}

/** Starts to watch the next round trip. */
function watchAgain(latency: TypicalLatency): TypicalLatency {
  return {
    ...NO_LATENCY,
    lowestMs: latency.lowestMs,
    lowestBeforeMs: latency.lowestBeforeMs,
    periodSinceMs: latency.periodSinceMs,
  };
}

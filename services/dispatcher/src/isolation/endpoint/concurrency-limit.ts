import { isUnusual, NO_CONGESTION, withAttempt, type CongestionShare } from './congestion-share.ts';
import {
  baseOf,
  isNearBase,
  NO_LATENCY,
  toleratedMs,
  typicalMs,
  watchAgain,
  withNewBase,
  withSample,
  withTypical,
  type TypicalLatency,
} from './typical-latency.ts';

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
  /** Attempts wait for a place because of this limit. */
  isLimited: boolean;
}

/** For each success: half of slow start (RFC 5681), because a queue shows only one round trip later. */
const FAST_GROWTH = 0.5;
/**
 * Near the limit that failed: one place or 1 %, per second or round trip, whichever is longer. An
 * endpoint that takes 10 at once for 50 ms refused 8 % with one place per round trip (RFC 5681), and
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
/** Exponential growth ends at this share of the limit that failed, and at least one place below it. */
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
  // When few attempts of many are left (a hold, the end of a burst), only the slow ones are seen.
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

/** A limit of which more than half is free is not the bottleneck (as in Netflix concurrency-limits). */
function isUsed(value: number, running: number): boolean {
  return running * 2 >= value;
}

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
  /** The least, reached only by answers of 429 and 503 and by timeouts. */
  floor: number;
  /** Where an endpoint begins; latency alone never takes it lower. */
  start: number;
  ceiling: number;
}

export interface ConcurrencyLimit {
  /** `Math.floor(value)` attempts at once are allowed. */
  readonly value: number;
  /** Below this many growth is exponential; Infinity until the first retreat. */
  readonly reach: number;
  /** The last retreat (monotonic, milliseconds): what began before says nothing of the limit since. */
  readonly retreatedMs: number;
  /** Whether an attempt that began after the last retreat has succeeded. */
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

/** For each success: half of slow start (RFC 5681), because a queue shows only a round trip later. */
const FAST_GROWTH = 0.5;
/**
 * Near the limit that failed: one place or 1 %, each second or round trip, whichever is longer. With
 * one each round trip (RFC 5681) an endpoint that takes 10 at once for 50 ms refused 8 %, so 1.4 %.
 */
const GENTLE = { share: 0.01, ms: 1_000 };
/** So far beyond it the endpoint has changed: 10 % each round trip. */
const PROBING = { fromShare: 1.25, growth: 0.1 };
/** CUBIC (RFC 9438) keeps 0.7; RFC 5681 halves, which is right when nothing gets through. */
const KEPT = { afterSuccess: 0.7, afterNone: 0.5 };
/** Exponential growth ends this much, and at least one place, below the limit that failed. */
const REACH_SHARE = 0.9;
/** Gradient2 takes at most half at once. A tenth more than the estimate goes, so that the queue empties. */
const GRADIENT = { least: 0.5, drain: 0.9 };

export function initialLimit(bounds: LimitBounds): ConcurrencyLimit {
  return {
    value: within(bounds.start, bounds),
    reach: Infinity,
    retreatedMs: -Infinity,
    hasSucceeded: false,
    congestion: NO_CONGESTION,
    latency: NO_LATENCY,
  };
}

/**
 * Growth as in TCP (RFC 5681), retreat from refusals once per round trip (AIMD), and from latency by
 * the ratio of the lowest to the current one (Gradient2 of Netflix concurrency-limits).
 */
export function limitAfter(
  limit: ConcurrencyLimit,
  ended: EndedAttempt,
  bounds: LimitBounds,
): ConcurrencyLimit {
  const isNews = isMeasured(ended) && ended.startedMs > limit.retreatedMs;
  if (!isNews || ended.verdict === 'neutral') return clamped(limit, bounds);
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
  const congestion = withAttempt(limit.congestion, true, isBelowReach(limit));
  const known: ConcurrencyLimit = { ...clamped(limit, bounds), congestion };
  if (!isUnusual(congestion)) return known;
  const kept = value * (hasSucceeded ? KEPT.afterSuccess : KEPT.afterNone);
  // While nothing succeeds the reach stays: after an outage the limit is soon back where it was.
  const reach = hasSucceeded ? Math.min(value * REACH_SHARE, value - 1) : limit.reach;
  return retreat(known, { value: within(kept, bounds), reach, nowMs: endedMs });
}

/** Before the first retreat nothing is known to be below. */
function isBelowReach({ value, reach }: ConcurrencyLimit): boolean {
  return value < reach && reach < Infinity;
}

function retreat(
  limit: ConcurrencyLimit,
  { value, reach, nowMs }: { value: number; reach: number; nowMs: number },
): ConcurrencyLimit {
  return {
    value,
    reach,
    retreatedMs: nowMs,
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
    reach: limit.reach,
    retreatedMs: limit.retreatedMs,
    hasSucceeded: true,
    congestion: withAttempt(limit.congestion, false, isBelowReach(limit)),
    latency,
  };
  const ms = typicalMs(latency, ended.endedMs);
  return ms === null ? grown : afterRoundTrip(grown, ms, ended, bounds);
}

/** For one success; a round trip brings about `value` of them. */
function growthOf(
  { value, reach }: ConcurrencyLimit,
  { startedMs, endedMs }: EndedAttempt,
): number {
  if (value < reach) return FAST_GROWTH;
  if (value > reach * PROBING.fromShare) return PROBING.growth;
  const roundTrip = Math.max(1 / value, GENTLE.share);
  return roundTrip * Math.min(1, (endedMs - startedMs) / GENTLE.ms);
}

function afterRoundTrip(
  limit: ConcurrencyLimit,
  ms: number,
  { endedMs, running }: EndedAttempt,
  bounds: LimitBounds,
): ConcurrencyLimit {
  const { value, reach, latency } = limit;
  // When few are left of many (a hold, the end of a burst), the slow ones are all that is seen.
  if (running * 2 < latency.peak) return { ...limit, latency: watchAgain(latency) };
  const isSlow = ms > toleratedMs(latency);
  // With so few attempts at once the latency is the endpoint's own, whatever it is.
  if (latency.peak <= bounds.start) {
    const relearned = withNewBase(latency, ms, endedMs);
    return { ...limit, reach: isSlow ? Infinity : reach, latency: relearned };
  }
  if (!isSlow || !isUsed(value, running)) {
    return { ...limit, latency: withTypical(latency, ms, endedMs) };
  }
  const share = Math.max(GRADIENT.least, (GRADIENT.drain * baseOf(latency)) / ms);
  const fitting = Math.max(bounds.start, Math.min(value, latency.peak) * share);
  const kept = within(Math.min(fitting, value), bounds);
  return retreat(limit, { value: kept, reach: kept / GRADIENT.drain, nowMs: endedMs });
}

/** A limit of which half is free is not what holds the attempts back (as in Netflix's limits). */
function isUsed(value: number, running: number): boolean {
  return running * 2 >= value;
}

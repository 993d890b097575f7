import type { Outcome } from '@posthorn/domain/delivery/delivery.ts';
import {
  type ConcurrencyLimit,
  type EndedAttempt,
  type HandedOverLimit,
  handOverLimit,
  inheritedLimit,
  initialLimit,
  limitAfter,
  type LimitBounds,
} from './concurrency-limit.ts';
import type { QueueKind } from './gate.ts';
import type { PacedByHost } from './host-pace.ts';
import {
  expectedRate,
  type HandedOverRate,
  handOverRate,
  inheritedRate,
  type LearnedRate,
  NO_RATE,
  rateAfterRefusal,
  rateAfterSuccess,
  ratePerSecond,
} from './learned-rate.ts';

/** Everything learned about the endpoint of one webhook. Times are monotonic unless said otherwise. */
export interface Endpoint extends Slowness, PacedByHost {
  webhookId: string;
  companyId: string;
  /** Where its attempts go. Everything learned about the endpoint applies to this URL only. */
  url: string;
  running: Record<QueueKind, number>;
  /** The attempt that was given a slot last came from the slow lane. */
  wasSlowLast: boolean;
  /** The lowest recent duration, in milliseconds. It falls at once and rises slowly; 0 before the first. */
  quickestMs: number;
  limit: ConcurrencyLimit;
  rate: LearnedRate;
  /** The webhook's own limit. */
  rateLimitPerSecond: number | null;
  /** When the pause that it asked for ends. */
  pausedUntilMs: number;
  /** When its pace allows the next attempt. */
  nextPacedMs: number;
  /** The attempts of the last second; null before it had a pace. */
  sent: SentLastSecond | null;
  /** Turns up to here (milliseconds since 1970) are booked for deferred attempts. */
  bookedUntilMs: number;
  lastEndMs: number;
  /** Attempts that its circuit has deferred since its last success. */
  deferredByCircuit: number;
}

/** One attempt that ended, as its endpoint is judged by it. */
export interface ObservedAttempt {
  outcome: Outcome;
  statusCode: number | null;
  /** The value of `Retry-After`, in milliseconds; null without one. Not every response with it asks for a pause. */
  retryAfterMs: number | null;
  startedMs: number;
  endedMs: number;
  /** Without the time in which the event loop was blocked, see `createStallFreeClock`. */
  durationMs: number;
  /** Attempts under way to the endpoint when it ended, itself included. */
  running: number;
  /** Other attempts wait for a slot at the endpoint. */
  isLimited: boolean;
}

/**
 * The share of the difference that each slower attempt adds: half of a lasting change is learned after
 * 35.
 */
const QUICKEST_RISES_BY = 0.02;

export function createEndpoint(
  { webhookId, companyId, url }: Pick<Endpoint, 'webhookId' | 'companyId' | 'url'>,
  bounds: LimitBounds,
): Endpoint {
  return {
    webhookId,
    companyId,
    url,
    running: { first: 0, retry: 0, slow: 0 },
    wasSlowLast: false,
    overdue: 0,
    slowUntilMs: 0,
    quickestMs: 0,
    limit: initialLimit(bounds),
    rate: NO_RATE,
    rateLimitPerSecond: null,
    pausedUntilMs: 0,
    nextPacedMs: 0,
    sent: null,
    host: null,
    hostStartMs: null,
    bookedUntilMs: 0,
    lastEndMs: 0,
    deferredByCircuit: 0,
  };
}

/**
 * Forgets what was learned of a former URL: another one is another endpoint. Attempts under way stay, and
 * so does the last second of the webhook's own rate limit.
 */
export function resetForNewUrl(endpoint: Endpoint, url: string, bounds: LimitBounds): void {
  const { running, sent } = endpoint;
  Object.assign(endpoint, createEndpoint({ ...endpoint, url }, bounds), { running, sent });
}

/** Everything learned about an endpoint that its next owner begins with. */
export interface HandedOverEndpoint {
  isSlow: boolean;
  /** See Endpoint. */
  quickestMs: number;
  limit: HandedOverLimit;
  rate: HandedOverRate | null;
}

export function handOver(endpoint: Endpoint, nowMs: number): HandedOverEndpoint {
  return {
    isSlow: isSlow(endpoint, nowMs),
    quickestMs: endpoint.quickestMs,
    limit: handOverLimit(endpoint.limit),
    rate: handOverRate(endpoint.rate, nowMs),
  };
}

/** Begins a new endpoint with the knowledge of its former owner. A slow one is slow until an attempt shows the opposite. */
export function inherit(
  endpoint: Endpoint,
  from: HandedOverEndpoint,
  bounds: LimitBounds,
  nowMs: number,
): void {
  endpoint.slowUntilMs = from.isSlow ? nowMs + SLOW_FOR_MS : 0;
  endpoint.quickestMs = from.quickestMs;
  endpoint.limit = inheritedLimit(from.limit, bounds, nowMs);
  endpoint.rate = inheritedRate(from.rate, nowMs);
}

export function concurrencyOf({ limit }: Pick<Endpoint, 'limit'>): number {
  return Math.floor(limit.value);
}

export function runningOf({ running }: Pick<Endpoint, 'running'>): number {
  return running.first + running.retry + running.slow;
}

/** Learns about the endpoint from an attempt that has ended. */
export function learn(endpoint: Endpoint, observed: ObservedAttempt, bounds: LimitBounds): void {
  const { endedMs, durationMs, outcome, retryAfterMs } = observed;
  endpoint.quickestMs = quickestOf(endpoint.quickestMs, durationMs);
  endpoint.slowUntilMs = slowUntilMsAfter(durationMs, endedMs);
  endpoint.lastEndMs = endedMs;
  const ended = { ...observed, startedMs: endedMs - durationMs, verdict: verdictOf(observed) };
  endpoint.limit = limitAfter(endpoint.limit, ended, bounds);
  if (outcome === 'success') {
    endpoint.rate = rateAfterSuccess(endpoint.rate, observed);
    endpoint.deferredByCircuit = 0;
  }
  if (isRefusal(observed))
    endpoint.rate = rateAfterRefusal(endpoint.rate, observed, asksForPause(observed));
  if (asksForPause(observed) && retryAfterMs !== null) {
    endpoint.pausedUntilMs = Math.max(endpoint.pausedUntilMs, endedMs + retryAfterMs);
    // Otherwise the pace would catch up on what it missed during the pause, and be refused again.
    endpoint.nextPacedMs = Math.max(endpoint.nextPacedMs, endpoint.pausedUntilMs);
  }
}

/**
 * A slow token server makes the endpoint slow like a slow endpoint: its attempts hold their slots as long.
 * One that fails at once does not show that the endpoint is fast again. Nothing else is learned.
 */
export function learnWithoutToken(endpoint: Slowness, durationMs: number, endedMs: number): void {
  const slowUntilMs = slowUntilMsAfter(durationMs, endedMs);
  endpoint.slowUntilMs = Math.max(endpoint.slowUntilMs, slowUntilMs);
}

function quickestOf(knownMs: number, durationMs: number): number {
  if (knownMs === 0) return durationMs;
  return Math.min(durationMs, knownMs + (durationMs - knownMs) * QUICKEST_RISES_BY);
}

/** True for a 429 or 503 with a Retry-After that is not over: one of 0 asks for nothing. */
export function asksForPause({
  statusCode,
  retryAfterMs,
}: Pick<ObservedAttempt, 'statusCode' | 'retryAfterMs'>): boolean {
  return (retryAfterMs ?? 0) > 0 && (statusCode === 429 || statusCode === 503);
}

/** True when the endpoint says that it gets too much: a 429, or a 503 that asks for a pause. */
function isRefusal(observed: ObservedAttempt): boolean {
  return observed.outcome === 'http_429' || asksForPause(observed);
}

function verdictOf({ outcome, statusCode }: ObservedAttempt): EndedAttempt['verdict'] {
  if (outcome === 'success') return 'success';
  if (outcome === 'http_429' || outcome === 'timeout' || statusCode === 503) return 'congested';
  return 'neutral';
}

/** A late timer catches up, by this much at most. */
const CATCH_UP_MS = 200;
/** The assumed duration of an attempt before the first one has ended. */
const UNKNOWN_MS = 100;

/**
 * Returns the attempts per second that are allowed, by the webhook or as learned, whichever is less;
 * null for no bound.
 */
export function paceOf(
  { rateLimitPerSecond, rate }: Pick<Endpoint, 'rateLimitPerSecond' | 'rate'>,
  nowMs: number,
): number | null {
  return lowest(ratePerSecond(rate, nowMs), rateLimitPerSecond);
}

function lowest(learned: number | null, ofWebhook: number | null): number | null {
  if (learned === null || ofWebhook === null) return learned ?? ofWebhook;
  return Math.min(learned, ofWebhook);
}

/**
 * Returns the mean time between two starts of a backlog, in milliseconds: with all slots of the endpoint
 * taken, or at the rate that is expected of it, whichever is longer. It goes by the quickest responses: when
 * this process is short of CPU, every endpoint looks slow, and none should wait for that.
 */
export function spacingMs(endpoint: Endpoint, nowMs: number): number {
  const bySlotsMs = (endpoint.quickestMs || UNKNOWN_MS) / concurrencyOf(endpoint);
  const pace = lowest(expectedRate(endpoint.rate, nowMs), endpoint.rateLimitPerSecond);
  return pace === null ? bySlotsMs : Math.max(bySlotsMs, 1_000 / pace);
}

/**
 * Returns how long until the pace allows another attempt, in milliseconds; 0 when it does now or there
 * is no pace.
 */
export function untilPaceAllowsMs(endpoint: Endpoint, nowMs: number): number {
  const pace = paceOf(endpoint, nowMs);
  // When a learned rate is forgotten, nextPacedMs stays behind and must be ignored.
  if (pace === null) return 0;
  const rateInMs = endpoint.sent ? untilRateAllowsMs(endpoint.sent, pace, nowMs) : 0;
  return Math.max(0, endpoint.nextPacedMs - nowMs, rateInMs);
}

/** Counts an attempt that starts now against the pace. `isQueued`: other attempts wait for the pace. */
export function advancePace(endpoint: Endpoint, nowMs: number, isQueued: boolean): void {
  const pace = paceOf(endpoint, nowMs);
  if (pace === null) return;
  const catchUpMs = isQueued ? CATCH_UP_MS : 0;
  endpoint.nextPacedMs = Math.max(endpoint.nextPacedMs, nowMs - catchUpMs) + 1_000 / pace;
  endpoint.sent ??= createSentLastSecond();
  countSent(endpoint.sent, nowMs);
}

/** How many attempts started in each 10 ms of the last second. All times are monotonic milliseconds. */
export interface SentLastSecond {
  /** A ring buffer: the count of bucket `n` is at `n % BUCKETS`. */
  counts: Uint16Array;
  newestBucket: number;
}

const BUCKET_MS = 10;
const BUCKETS = 1_000 / BUCKET_MS;

export function createSentLastSecond(): SentLastSecond {
  return { counts: new Uint16Array(BUCKETS), newestBucket: -1 };
}

export function countSent(sent: SentLastSecond, nowMs: number): void {
  const { counts } = sent;
  const bucket = bucketOf(nowMs);
  const passed = Math.min(bucket - sent.newestBucket, BUCKETS);
  for (let back = 0; back < passed; back += 1) counts[(bucket - back) % BUCKETS] = 0;
  sent.newestBucket = Math.max(bucket, sent.newestBucket);
  counts[bucket % BUCKETS] = (counts[bucket % BUCKETS] ?? 0) + 1;
}

/**
 * Returns how long, in milliseconds, until another attempt may start such that no second (less 10 ms)
 * has more than `perSecond`; 0 when it may start now. Most receivers limit a second, fixed or sliding:
 * what a late timer missed may be caught up within the same second, but not in the next one.
 */
export function untilRateAllowsMs(
  { counts, newestBucket }: SentLastSecond,
  perSecond: number,
  nowMs: number,
): number {
  const most = Math.max(1, Math.floor(perSecond));
  let count = 0;
  const oldestBucket = Math.max(0, bucketOf(nowMs) - BUCKETS + 1);
  for (let bucket = newestBucket; bucket >= oldestBucket; bucket -= 1) {
    count += counts[bucket % BUCKETS] ?? 0;
    if (count >= most) return Math.max(0, (bucket + BUCKETS) * BUCKET_MS - nowMs);
  }
  return 0;
}

function bucketOf(nowMs: number): number {
  return Math.floor(nowMs / BUCKET_MS);
}

/** From this time on an attempt makes its endpoint slow, even before it ends. */
const SLOW_MS = 1_000;
/** A slow endpoint without traffic counts as fast again after this time. */
const SLOW_FOR_MS = 60_000;

/** Decides whether an endpoint is slow. */
interface Slowness {
  /** How many of the attempts under way are overdue. */
  overdue: number;
  /** Until then (monotonic) it counts as slow, unless an attempt shows that it is not. */
  slowUntilMs: number;
}

/** An endpoint is slow while an attempt is overdue, and after an attempt that took a second or longer. */
export function isSlow({ overdue, slowUntilMs }: Slowness, nowMs: number): boolean {
  return overdue > 0 || slowUntilMs > nowMs;
}

/**
 * `runningMs`: for how long the attempt has been under way, without the time in which the event loop
 * was blocked.
 */
export function isOverdue(runningMs: number): boolean {
  return runningMs >= SLOW_MS;
}

/** Returns the new `slowUntilMs`: the attempt that ended last decides. */
function slowUntilMsAfter(durationMs: number, endedMs: number): number {
  return durationMs >= SLOW_MS ? endedMs + SLOW_FOR_MS : 0;
}

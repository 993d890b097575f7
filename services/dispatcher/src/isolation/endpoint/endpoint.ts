import type { Outcome } from '@posthorn/domain/outcome.ts';
import {
  initialLimit,
  limitAfter,
  type ConcurrencyLimit,
  type EndedAttempt,
  type LimitBounds,
} from './concurrency-limit.ts';
import type { Lane } from '../gate/views.ts';
import { NO_RATE, rateAfterRefusal, rateAfterSuccess, type LearnedRate } from './learned-rate.ts';
import type { SentLately } from './sent-lately.ts';

/** What is known of one webhook's endpoint. Times are of the monotonic clock unless said otherwise. */
export interface Endpoint {
  webhookId: string;
  companyId: string;
  running: Record<Lane, number>;
  /** The attempt that was begun last came over the slow lane. */
  wasSlowLast: boolean;
  /** Of those under way, how many have taken too long already. */
  overdue: number;
  /** Until then it counts as slow, unless an attempt shows that it is not. */
  slowUntilMs: number;
  /** The lowest duration of late, in milliseconds: it falls at once and rises slowly; 0 before the first. */
  quickestMs: number;
  limit: ConcurrencyLimit;
  rate: LearnedRate;
  /** The webhook's own limit. */
  rateLimitPerSecond: number | null;
  /** The pause that it asked for ends then. */
  holdUntilMs: number;
  /** When its rate allows the next attempt. */
  nextTurnMs: number;
  /** What its rate has allowed of late; null before it had one. */
  sent: SentLately | null;
  /** Turns up to here (milliseconds since 1970) are given to attempts that were deferred. */
  bookedUntilMs: number;
  lastEndMs: number;
  /** Attempts that its circuit has deferred since it last answered well. */
  deferredByCircuit: number;
}

/** What one attempt showed of its endpoint. */
export interface Shown {
  outcome: Outcome;
  statusCode: number | null;
  /** How long it asked not to be sent anything, in milliseconds; null when it did not. */
  retryAfterMs: number | null;
  startedMs: number;
  endedMs: number;
  /** How long it took, without the time in which this process did something else, see busy-clock.ts. */
  durationMs: number;
  /** Attempts under way to the endpoint when it ended, itself included. */
  running: number;
  /** Others wait for a place at the endpoint. */
  isLimited: boolean;
}

/** An attempt under way for this long makes its endpoint a slow one. */
export const SLOW_MS = 1_000;
/** A slow endpoint without traffic is given another chance after this time. */
const FORGIVEN_MS = 60_000;
/** Of the difference to each slower answer: half of a lasting change is learned after 35 answers. */
const QUICKEST_RISES_BY = 0.02;
export function createEndpoint(
  { webhookId, companyId }: { webhookId: string; companyId: string },
  bounds: LimitBounds,
): Endpoint {
  return {
    webhookId,
    companyId,
    running: { first: 0, retry: 0, slow: 0 },
    wasSlowLast: false,
    overdue: 0,
    slowUntilMs: 0,
    quickestMs: 0,
    limit: initialLimit(bounds),
    rate: NO_RATE,
    rateLimitPerSecond: null,
    holdUntilMs: 0,
    nextTurnMs: 0,
    sent: null,
    bookedUntilMs: 0,
    lastEndMs: 0,
    deferredByCircuit: 0,
  };
}

export function concurrencyOf({ limit }: Pick<Endpoint, 'limit'>): number {
  return Math.floor(limit.value);
}

export function runningOf({ running }: Pick<Endpoint, 'running'>): number {
  return running.first + running.retry + running.slow;
}

export function isSlow(
  { overdue, slowUntilMs }: Pick<Endpoint, 'overdue' | 'slowUntilMs'>,
  nowMs: number,
): boolean {
  return overdue > 0 || slowUntilMs > nowMs;
}

/** Learns from an attempt that has ended. */
export function learn(endpoint: Endpoint, shown: Shown, bounds: LimitBounds): void {
  const { endedMs, durationMs, outcome, retryAfterMs } = shown;
  endpoint.quickestMs = quickestOf(endpoint.quickestMs, durationMs);
  // The newest attempt to end decides whether the endpoint is slow.
  endpoint.slowUntilMs = durationMs >= SLOW_MS ? endedMs + FORGIVEN_MS : 0;
  endpoint.lastEndMs = endedMs;
  const ended = { ...shown, startedMs: endedMs - durationMs, verdict: verdictOf(shown) };
  endpoint.limit = limitAfter(endpoint.limit, ended, bounds);
  if (outcome === 'success') {
    endpoint.rate = rateAfterSuccess(endpoint.rate, shown);
    endpoint.deferredByCircuit = 0;
  }
  if (isRefusal(shown)) endpoint.rate = rateAfterRefusal(endpoint.rate, shown);
  if (asksForPause(shown) && retryAfterMs !== null) {
    endpoint.holdUntilMs = Math.max(endpoint.holdUntilMs, endedMs + retryAfterMs);
    // Else the rate would make good what it left out meanwhile, and be refused again.
    endpoint.nextTurnMs = Math.max(endpoint.nextTurnMs, endpoint.holdUntilMs);
  }
}

function quickestOf(knownMs: number, durationMs: number): number {
  if (knownMs === 0) return durationMs;
  return Math.min(durationMs, knownMs + (durationMs - knownMs) * QUICKEST_RISES_BY);
}

/** A 429 or 503 that says when to come again. */
export function asksForPause({
  statusCode,
  retryAfterMs,
}: Pick<Shown, 'statusCode' | 'retryAfterMs'>): boolean {
  return retryAfterMs !== null && (statusCode === 429 || statusCode === 503);
}

/** It takes fewer attempts than it gets: a 429, or a 503 that says when to come again. */
function isRefusal(shown: Shown): boolean {
  return shown.outcome === 'http_429' || asksForPause(shown);
}

function verdictOf({ outcome, statusCode }: Shown): EndedAttempt['verdict'] {
  if (outcome === 'success') return 'success';
  if (outcome === 'http_429' || outcome === 'timeout' || statusCode === 503) return 'congested';
  return 'neutral';
}

import type { Outcome } from '@posthorn/domain/outcome.ts';
import {
  initialLimit,
  limitAfter,
  type ConcurrencyLimit,
  type EndedAttempt,
  type LimitBounds,
} from './concurrency-limit.ts';
import type { Lane } from './gate.ts';
import {
  NO_RATE,
  rateAfterRefusal,
  rateAfterSuccess,
  ratePerSecond,
  type LearnedRate,
} from './learned-rate.ts';

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
/** A rate is kept by the schedule: what a late timer left out is made good up to this. */
const CATCH_UP_MS = 100;
/** Of the difference to each slower answer: half of a lasting change is learned after 35 answers. */
const QUICKEST_RISES_BY = 0.02;
/** Before the first attempt has ended, one is taken to last for this long. */
const UNKNOWN_MS = 100;

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

/** Attempts per second, set or learned, whichever is less; null for no bound. */
export function paceOf(
  { rateLimitPerSecond, rate }: Pick<Endpoint, 'rateLimitPerSecond' | 'rate'>,
  nowMs: number,
): number | null {
  const learned = ratePerSecond(rate, nowMs);
  if (learned === null || rateLimitPerSecond === null) return learned ?? rateLimitPerSecond;
  return Math.min(learned, rateLimitPerSecond);
}

/**
 * How often the endpoint can begin an attempt when all of its places are taken, in milliseconds. By
 * its quickest answers: when this process is short of CPU all endpoints look slow, and that is not
 * theirs to wait for.
 */
export function spacingMs(endpoint: Endpoint, nowMs: number): number {
  const byPlacesMs = (endpoint.quickestMs || UNKNOWN_MS) / concurrencyOf(endpoint);
  const pace = paceOf(endpoint, nowMs);
  return pace === null ? byPlacesMs : Math.max(byPlacesMs, 1_000 / pace);
}

/** Takes the next turn of the endpoint's rate, if it has one. `isWaited`: others wait for theirs. */
export function takePacedTurn(endpoint: Endpoint, nowMs: number, isWaited: boolean): void {
  const pace = paceOf(endpoint, nowMs);
  if (pace === null) return;
  const catchUpMs = isWaited ? CATCH_UP_MS : 0;
  endpoint.nextTurnMs = Math.max(endpoint.nextTurnMs, nowMs - catchUpMs) + 1_000 / pace;
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
  if (isRefusal(shown) && retryAfterMs !== null) {
    endpoint.holdUntilMs = Math.max(endpoint.holdUntilMs, endedMs + retryAfterMs);
    // Else the rate would make good what it left out meanwhile, and be refused again.
    endpoint.nextTurnMs = Math.max(endpoint.nextTurnMs, endpoint.holdUntilMs);
  }
}

function quickestOf(knownMs: number, durationMs: number): number {
  if (knownMs === 0) return durationMs;
  return Math.min(durationMs, knownMs + (durationMs - knownMs) * QUICKEST_RISES_BY);
}

/** It takes fewer attempts than it gets: a 429, or a 503 that says when to come again. */
function isRefusal({ outcome, statusCode, retryAfterMs }: Shown): boolean {
  return outcome === 'http_429' || (statusCode === 503 && retryAfterMs !== null);
}

function verdictOf({ outcome, statusCode }: Shown): EndedAttempt['verdict'] {
  if (outcome === 'success') return 'success';
  if (outcome === 'http_429' || outcome === 'timeout' || statusCode === 503) return 'congested';
  return 'neutral';
}

import { concurrencyOf, type Endpoint } from './endpoint.ts';
import { expectedRate, ratePerSecond } from './learned-rate.ts';
import { countSent, createSentLastSecond, untilRateAllowsMs } from './sent-last-second.ts';

/** What a late timer missed is caught up, up to this much. */
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
 * Returns the mean time between two starts of a backlog, in milliseconds: with all places of the endpoint
 * taken, or at the rate that is expected of it, whichever is longer. It goes by the quickest responses: when
 * this process is short of CPU, every endpoint looks slow, and none should wait for that.
 */
export function spacingMs(endpoint: Endpoint, nowMs: number): number {
  const byPlacesMs = (endpoint.quickestMs || UNKNOWN_MS) / concurrencyOf(endpoint);
  const pace = lowest(expectedRate(endpoint.rate, nowMs), endpoint.rateLimitPerSecond);
  return pace === null ? byPlacesMs : Math.max(byPlacesMs, 1_000 / pace);
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

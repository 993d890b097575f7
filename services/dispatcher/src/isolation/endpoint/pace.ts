import { concurrencyOf, type Endpoint } from './endpoint.ts';
import { ratePerSecond } from './learned-rate.ts';
import { countSent, createSentLately, untilSecondHasRoomMs } from './sent-lately.ts';

/** A rate is kept by the schedule: what a late timer left out is made good up to this. */
const CATCH_UP_MS = 200;
/** Before the first attempt has ended, one is taken to last for this long. */
const UNKNOWN_MS = 100;

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

/** How long until its rate allows another attempt, in milliseconds; 0 when it does now or there is none. */
export function untilPaceAllowsMs(endpoint: Endpoint, nowMs: number): number {
  const pace = paceOf(endpoint, nowMs);
  // A rate that was forgotten leaves its next turn behind.
  if (pace === null) return 0;
  const roomInMs = endpoint.sent ? untilSecondHasRoomMs(endpoint.sent, pace, nowMs) : 0;
  return Math.max(0, endpoint.nextTurnMs - nowMs, roomInMs);
}

/** Takes the next turn of the endpoint's rate, if it has one. `isWaited`: others wait for theirs. */
export function takePacedTurn(endpoint: Endpoint, nowMs: number, isWaited: boolean): void {
  const pace = paceOf(endpoint, nowMs);
  if (pace === null) return;
  const catchUpMs = isWaited ? CATCH_UP_MS : 0;
  endpoint.nextTurnMs = Math.max(endpoint.nextTurnMs, nowMs - catchUpMs) + 1_000 / pace;
  endpoint.sent ??= createSentLately();
  countSent(endpoint.sent, nowMs);
}

import type { AttemptView, EndpointView } from './views.ts';

/** A waiting attempt delays the commit of its partition. */
export const MAX_WAIT_MS = 30_000;
/** The least, however little memory is left: a shorter wait says nothing about the endpoint. */
export const MIN_WAIT_MS = 1_000;
/** Between these shares of the memory budget the wait shrinks from the maximum to the minimum. */
const SHRINKS_FROM = 0.25;
const SHRINKS_TO = 0.75;
/** A deferred attempt that comes for its turn finds a queue that new attempts may have filled. */
const FACTOR_FOR_DEFERRED = 1.5;
/** A healthy endpoint finishes its probe sooner, so that nothing has to be deferred meanwhile. */
export const PROBE_WAIT_MS = 500;
/** A turn this near is waited for in memory. */
const MIN_NEAR_MS = 5_000;

/**
 * Returns how long, in milliseconds, an attempt may wait in memory for its endpoint when this share
 * of the memory budget is used. Endpoints that cannot take their own load give way first, down to one
 * second of it. Only then does the dispatcher stop reading.
 */
export function maxWaitMsAt(usedShare: number): number {
  const left = (SHRINKS_TO - usedShare) / (SHRINKS_TO - SHRINKS_FROM);
  return MIN_WAIT_MS + (MAX_WAIT_MS - MIN_WAIT_MS) * Math.min(1, Math.max(0, left));
}

/** Returns how long this attempt may wait, where a new one may wait for `maxWaitMs`. */
export function longestWaitMs({ precedesBooked }: AttemptView, maxWaitMs: number): number {
  return precedesBooked ? maxWaitMs * FACTOR_FOR_DEFERRED : maxWaitMs;
}

/** Earlier than that an attempt would find the queue full of later turns, and be deferred again. */
export function isTurnNear(turnInMs: number, maxWaitMs: number): boolean {
  return turnInMs <= Math.max(MIN_NEAR_MS, maxWaitMs / 3);
}

/** Returns how long it takes until the attempt starts, as far as its endpoint alone decides that. */
export function expectedWaitMs(
  { ahead, precedesBooked }: AttemptView,
  { holdInMs, paceInMs, hostInMs, bookedInMs, spacingMs }: EndpointView,
): number {
  // Turns are booked behind the attempts that wait in the queue, which must not count twice.
  const queueMs = Math.max(holdInMs, paceInMs, hostInMs) + ahead * spacingMs;
  return Math.max(precedesBooked ? 0 : bookedInMs, queueMs);
}

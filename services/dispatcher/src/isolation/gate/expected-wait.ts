import type { AttemptView, EndpointView } from './views.ts';

/** Who was deferred and comes for its turn may wait longer: the queue is as full as new ones may make it. */
const FOR_THEIR_TURN = 1.5;

/** Who comes earlier would find the queue full of later turns, and be deferred again. */
export function isNear(turnInMs: number, maxWaitMs: number): boolean {
  return turnInMs <= Math.max(5_000, maxWaitMs / 3);
}

/** `maxWaitMs`: how long an attempt may wait in memory for its endpoint. */
export function longestWaitMs({ isInFront }: AttemptView, maxWaitMs: number): number {
  return isInFront ? maxWaitMs * FOR_THEIR_TURN : maxWaitMs;
}

/** How long it will take until the attempt is begun, as far as its endpoint alone decides that. */
export function expectedWaitMs(
  { ahead, isInFront }: AttemptView,
  { holdInMs, paceInMs, bookedInMs, spacingMs }: EndpointView,
): number {
  // Turns were booked behind those that stand in line.
  return Math.max(isInFront ? 0 : bookedInMs, Math.max(holdInMs, paceInMs) + ahead * spacingMs);
}

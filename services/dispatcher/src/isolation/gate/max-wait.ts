/** An attempt that waits holds back the commit of its partition. */
const MAX_WAIT_MS = 30_000;
/** However little memory is left: a shorter wait says nothing about the endpoint. */
export const MIN_WAIT_MS = 1_000;
/** Between these shares of the memory the wait shrinks. */
const SHRINKS_FROM = 0.25;
const SHRINKS_TO = 0.75;

/**
 * How long, in milliseconds, an attempt may wait in memory for its endpoint when this share of the
 * memory is used. Endpoints that cannot take their own load give way first, down to a second of it;
 * only then is nothing more read.
 */
export function maxWaitMsAt(usedShare: number): number {
  const left = (SHRINKS_TO - usedShare) / (SHRINKS_TO - SHRINKS_FROM);
  return MIN_WAIT_MS + (MAX_WAIT_MS - MIN_WAIT_MS) * Math.min(1, Math.max(0, left));
}

/** The record of a delivery that a resend has published. */
export interface Published {
  /** When it was published last, in milliseconds since 1970. */
  atMs: number;
  times: number;
}

/**
 * An attempt takes 15 s at most. After this time without a result its record was probably lost; if it
 * was not, the dispatcher drops the copy.
 */
const AGAIN_MS = 120_000;
/** Ten copies in half a day. */
const MAX_AGAIN_MS = 2 * 3_600_000;

/** True when the delivery was not published yet, or so long ago that its record may be lost. */
export function mayBeLost(published: Published | undefined, nowMs: number): boolean {
  return published === undefined || nowMs - published.atMs > AGAIN_MS;
}

/**
 * Returns whether to publish again what may be lost while the circuit of its endpoint is open or its
 * company is suspended. Its record is most likely deferred and comes back by itself: each copy would be
 * deferred beside it for as long as that lasts. So the time doubles with each copy, from 4 minutes to 2
 * hours.
 */
export function isDueDespiteDeferral(published: Published | undefined, nowMs: number): boolean {
  if (published === undefined) return true;
  const againMs = Math.min(AGAIN_MS * 2 ** published.times, MAX_AGAIN_MS);
  return nowMs - published.atMs > againMs;
}

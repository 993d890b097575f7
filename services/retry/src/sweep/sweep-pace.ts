/** Two sweeps. A position that is later than this is caught up with as fast as MongoDB answers. */
export const BEHIND_MS = 600_000;

/** While it keeps up, the sweep works half of the time, so that it disturbs nothing else. */
const RESTS_PER_PAGE = 1;

/**
 * Returns how long to rest, in milliseconds, after a page that took `tookMs`. `behindMs` is how far the
 * position is from where the sweep ends.
 */
export function restMs({ tookMs, behindMs }: { tookMs: number; behindMs: number }): number {
  return behindMs > BEHIND_MS ? 0 : tookMs * RESTS_PER_PAGE;
}

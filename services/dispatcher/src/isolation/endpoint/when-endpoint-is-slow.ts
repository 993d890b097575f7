/** From this time on an attempt makes its endpoint slow, even before it ends. */
const SLOW_MS = 1_000;
/** A slow endpoint without traffic counts as fast again after this time. */
const SLOW_FOR_MS = 60_000;

/** What decides whether an endpoint is slow. */
export interface Slowness {
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
export function slowUntilMsAfter(durationMs: number, endedMs: number): number {
  return durationMs >= SLOW_MS ? endedMs + SLOW_FOR_MS : 0;
}

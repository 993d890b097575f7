export interface StallFreeClock {
  /** Monotonic milliseconds, without the time in which the event loop was blocked. */
  nowMs: () => number;
  /** To be called every `everyMs`. By how much a call is late is time in which nothing could run. */
  tick: () => void;
}

/** A timer is this late in an idle process. */
const USUAL_LATENESS_MS = 2;

/**
 * A clock for the durations of attempts. A response that stays in the socket while this process does
 * something else (other responses, garbage collection, no CPU) must not make its endpoint look slow.
 * By the wall clock, in an overload, every endpoint took 160 ms, and attempts were deferred for that.
 */
export function createStallFreeClock(everyMs: number, monotonicMs: () => number): StallFreeClock {
  let lastTickMs = monotonicMs();
  let blockedMs = 0;
  const missedMs = (): number =>
    Math.max(0, monotonicMs() - lastTickMs - everyMs - USUAL_LATENESS_MS);
  return {
    nowMs: () => monotonicMs() - blockedMs - missedMs(),
    tick() {
      blockedMs += missedMs();
      lastTickMs = monotonicMs();
    },
  };
}

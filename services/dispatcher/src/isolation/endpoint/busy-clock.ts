export interface BusyClock {
  /** Monotonic milliseconds, without those in which this process stood still. */
  nowMs: () => number;
  /** To be called every `everyMs`; what it is late by is time in which nothing could run. */
  tick: () => void;
}

/** A timer is late by this in an idle process. */
const USUAL_LATENESS_MS = 2;

/**
 * An answer that lies in the socket while this process does something else (other answers, garbage
 * collection, no CPU) must not make its endpoint look slow: in an overload all of them took 160 ms by
 * the wall, and were deferred for it.
 */
export function createBusyClock(everyMs: number, monotonicMs: () => number): BusyClock {
  let lastTickMs = monotonicMs();
  let stoodStillMs = 0;
  const missedMs = (): number =>
    Math.max(0, monotonicMs() - lastTickMs - everyMs - USUAL_LATENESS_MS);
  return {
    nowMs: () => monotonicMs() - stoodStillMs - missedMs(),
    tick() {
      stoodStillMs += missedMs();
      lastTickMs = monotonicMs();
    },
  };
}

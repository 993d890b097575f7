export interface BusyClock {
  /** Monotonic milliseconds, without those in which this process stood still. */
  nowMs: () => number;
  /** To be called every `everyMs`; what it is late by is time in which nothing could run. */
  tick: () => void;
}

/** A timer is late by some milliseconds in any busy process. */
const USUAL_LATENESS_MS = 20;

/**
 * An answer that lies in the socket while this process stands still (garbage collection, no CPU) must
 * not make its endpoint look slow.
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

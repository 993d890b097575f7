export interface OverloadWatch {
  isOverloaded: () => boolean;
  /**
   * To be called often, with the share of the time since the last call in which the event loop was
   * busy, 0 to 1.
   */
  tick: (busyShare: number) => void;
}

/** Time in which the process was preempted counts as busy, so a machine short of CPU reaches this, too. */
const BUSY_FROM = 0.9;
/** An overload comes in waves. The queues that one of them left are not the fault of the endpoints. */
const LASTS_MS = 2_000;

/** Watches whether this process itself is the bottleneck. */
export function createOverloadWatch(monotonicMs: () => number): OverloadWatch {
  let untilMs = -Infinity;
  return {
    isOverloaded: () => monotonicMs() < untilMs,
    tick(busyShare) {
      if (busyShare >= BUSY_FROM) untilMs = monotonicMs() + LASTS_MS;
    },
  };
}

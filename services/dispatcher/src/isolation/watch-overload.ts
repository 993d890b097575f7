export interface OverloadWatch {
  isOverloaded: () => boolean;
  /** To be called often, with the share of the time since that the event loop had work, from 0 to 1. */
  tick: (busyShare: number) => void;
}

/** Preempted time counts as work, so this is reached when the machine is short of CPU too. */
const BUSY_FROM = 0.9;
/** An overload comes and goes in waves; what one of them left waiting is not the endpoints' fault. */
const LASTS_MS = 2_000;

/** Whether this process itself is the bottleneck. */
export function createOverloadWatch(monotonicMs: () => number): OverloadWatch {
  let untilMs = -Infinity;
  return {
    isOverloaded: () => monotonicMs() < untilMs,
    tick(busyShare) {
      if (busyShare >= BUSY_FROM) untilMs = monotonicMs() + LASTS_MS;
    },
  };
}

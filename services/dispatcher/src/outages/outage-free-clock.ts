export interface OutageFreeClock {
  /** Counts the time since the last call. To be called every 50 ms. */
  tick: () => void;
  /** Milliseconds so far. */
  countedMs: () => number;
}

export interface OutageFreeClockDeps {
  /** False while a store or Kafka fails: work that makes no progress then is no fault. */
  areStoresUp: () => boolean;
  monotonicMs: () => number;
}

/** A process that slept did not work, so that a longer time between two calls counts as this. */
const MAX_COUNTED_MS = 1_000;

/** Counts the time in which the stores answer. */
export function createOutageFreeClock({
  areStoresUp,
  monotonicMs,
}: OutageFreeClockDeps): OutageFreeClock {
  let countedMs = 0;
  let lastMs = monotonicMs();
  return {
    tick() {
      const nowMs = monotonicMs();
      if (areStoresUp()) countedMs += Math.min(nowMs - lastMs, MAX_COUNTED_MS);
      lastMs = nowMs;
    },
    countedMs: () => countedMs,
  };
}

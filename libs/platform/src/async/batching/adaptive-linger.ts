import type { Linger } from './batcher.ts';

export interface LingerBounds {
  /** How long the first item of a batch waits for others at most, in milliseconds. */
  maxLingerMs: number;
  /** The batch waits only if this many items are expected within `maxLingerMs`. */
  minExpected: number;
  /** A batch of this many items waits no longer. */
  enough: number;
  /** After this many usual intervals without an arrival, no further item is expected. */
  patience: number;
}

/** A batch that waits for further items. */
export interface Gathering {
  /** The usual time between two arrivals. */
  intervalMs: number;
  /** Time since its first item. */
  waitedMs: number;
  /** Time since its last item. */
  quietMs: number;
  waiting: number;
}

/** Returns how much longer the batch should wait, in milliseconds; 0 to start now. */
export function restOfLinger(
  { intervalMs, waitedMs, quietMs, waiting }: Gathering,
  { maxLingerMs, minExpected, enough, patience }: LingerBounds,
): number {
  if (waiting >= enough || intervalMs * minExpected > maxLingerMs) return 0;
  return Math.max(0, Math.min(maxLingerMs - waitedMs, patience * intervalMs - quietMs));
}

/** Weight of a new interval in the usual one: the last eight arrivals make most of it. */
const WEIGHT = 1 / 8;
/** In lingers. A pause counts as no more than this, so that a burst after it is noticed soon. */
const LONGEST = 2;

export interface Arrival {
  /** Time since the previous arrival. */
  gapMs: number;
  /** Nothing waited or ran when it arrived. */
  isAlone: boolean;
}

/**
 * Returns the usual interval after one more arrival (exponentially weighted). An item that arrives
 * alone counts as after a pause, however soon it comes: one client that sends again after each response
 * gives no reason to wait.
 */
export function nextInterval(
  intervalMs: number,
  { gapMs, isAlone }: Arrival,
  maxLingerMs: number,
): number {
  const longestMs = LONGEST * maxLingerMs;
  const seenMs = isAlone ? longestMs : Math.min(Math.max(0, gapMs), longestMs);
  return intervalMs + (seenMs - intervalMs) * WEIGHT;
}

/** Lingers long when many items arrive, and not for one that arrives alone. `monotonicMs` is the clock of the process. */
export function createAdaptiveLinger(bounds: LingerBounds, monotonicMs: () => number): Linger {
  let intervalMs = LONGEST * bounds.maxLingerMs;
  let firstAtMs = 0;
  let lastAtMs = 0;
  return {
    arrived({ waiting, running }) {
      const nowMs = monotonicMs();
      const arrival = { gapMs: nowMs - lastAtMs, isAlone: waiting + running === 0 };
      intervalMs = nextInterval(intervalMs, arrival, bounds.maxLingerMs);
      if (waiting === 0) firstAtMs = nowMs;
      lastAtMs = nowMs;
    },
    restMs({ waiting }) {
      const nowMs = monotonicMs();
      const [waitedMs, quietMs] = [nowMs - firstAtMs, nowMs - lastAtMs];
      return restOfLinger({ intervalMs, waitedMs, quietMs, waiting }, bounds);
    },
  };
}

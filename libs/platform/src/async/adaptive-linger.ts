import type { Linger } from './batcher.ts';

export interface LingerBounds {
  /** The longest that the first item of a batch waits for others, in milliseconds. */
  maxLingerMs: number;
  /** Others that must be expected within `maxLingerMs`; for fewer nobody waits. */
  minExpected: number;
  /** A batch of so many items waits no longer. */
  enough: number;
  /** After so many usual intervals without an arrival nobody else is expected. */
  patience: number;
}

/** A batch while it is gathered. */
export interface Gathering {
  /** The usual time between two arrivals. */
  intervalMs: number;
  /** Since its first item came. */
  waitedMs: number;
  /** Since its last item came. */
  quietMs: number;
  waiting: number;
}

/** How much longer the batch should wait, in milliseconds; 0 to begin now. */
export function restOfLinger(
  { intervalMs, waitedMs, quietMs, waiting }: Gathering,
  { maxLingerMs, minExpected, enough, patience }: LingerBounds,
): number {
  if (waiting >= enough || intervalMs * minExpected > maxLingerMs) return 0;
  return Math.max(0, Math.min(maxLingerMs - waitedMs, patience * intervalMs - quietMs));
}

/** The part of a new interval in the usual one: eight arrivals make most of it. */
const WEIGHT = 1 / 8;
/** In lingers. A pause counts for no more than this, so that a burst after it is noticed soon. */
const LONGEST = 2;

export interface Arrival {
  /** Since the arrival before it. */
  gapMs: number;
  /** Nothing waited or ran when it came. */
  isAlone: boolean;
}

/**
 * The usual interval after one more arrival (exponentially weighted). Who comes alone counts as
 * after a pause, however soon: one client that sends again after each answer is no crowd.
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

/** Long when many come, none for who comes alone. `monotonicMs` is the clock of the process. */
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

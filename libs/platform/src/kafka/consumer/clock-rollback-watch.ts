import { startTicker } from '../../async/loop.ts';

interface ClockRollbackDeps {
  /** The wall clock. */
  nowMs: () => number;
  monotonicMs: () => number;
  onRollback: (byMs: number) => void;
}

export interface ClockRollbackWatch {
  /** Compares the clocks; called once a second. */
  tick: () => void;
  stop: () => void;
}

const EVERY_MS = 1_000;
/** Heartbeats that are late by this much still keep a session of ten seconds. */
const TOLERATED_MS = 2_000;

/**
 * Calls `onRollback` when the wall clock was set back. kafkajs times its heartbeats by the wall clock:
 * when that is set back by an hour, it sends none for an hour. Its group gives its partitions to others
 * after ten seconds, and it continues to read them.
 */
export function watchForClockRollback(deps: ClockRollbackDeps): ClockRollbackWatch {
  const { nowMs, monotonicMs, onRollback } = deps;
  const difference = (): number => nowMs() - monotonicMs();
  let lastMs = difference();
  const tick = (): void => {
    const byMs = lastMs - difference();
    lastMs -= byMs;
    if (byMs > TOLERATED_MS) onRollback(byMs);
  };
  const ticker = startTicker(EVERY_MS, tick);
  return { tick, stop: ticker.stop };
}

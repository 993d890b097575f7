import { startTicker } from '@posthorn/platform/async/ticker.ts';

/** Work that must end by a deadline. */
export interface WithDeadline {
  /** By the monotonic clock (`performance.now`). */
  deadlineAtMs: number;
  /** Called once the deadline has passed. */
  expire: () => void;
}

export interface DeadlineSweep {
  add: (work: WithDeadline) => void;
  remove: (work: WithDeadline) => void;
  tick: () => void;
  stop: () => void;
}

const EVERY_MS = 100;

/**
 * One timer for all attempts under way. All have the same timeout, so that insertion order is deadline
 * order, and a sweep stops at the first deadline to come. An AbortController with a timer for each
 * attempt cost a third of the throughput (docs/decisions/0005-one-deadline-sweep.md).
 */
export function createDeadlineSweep(nowMs: () => number): DeadlineSweep {
  const running = new Set<WithDeadline>();
  function tick(): void {
    const now = nowMs();
    for (const work of running) {
      if (work.deadlineAtMs > now) return;
      running.delete(work);
      work.expire();
    }
  }
  const ticker = startTicker(EVERY_MS, tick);
  return {
    add: (work) => running.add(work),
    remove: (work) => running.delete(work),
    tick,
    stop: ticker.stop,
  };
}

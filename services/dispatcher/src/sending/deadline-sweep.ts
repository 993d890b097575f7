/** Something that must be over at a given time. */
export interface Timed {
  /** By the monotonic clock (`performance.now`). */
  deadlineAtMs: number;
  expire: () => void;
}

export interface DeadlineSweep {
  add: (timed: Timed) => void;
  remove: (timed: Timed) => void;
  tick: () => void;
  stop: () => void;
}

const EVERY_MS = 100;

/**
 * One timer for all attempts under way. They share one time-out, so insertion order is deadline
 * order and a sweep stops at the first young one; an AbortController with a timer for each attempt
 * cost a third of the throughput (docs/decisions/0005-one-deadline-sweep.md).
 */
export function createDeadlineSweep(nowMs: () => number): DeadlineSweep {
  const running = new Set<Timed>();
  function tick(): void {
    const now = nowMs();
    for (const timed of running) {
      if (timed.deadlineAtMs > now) return;
      running.delete(timed);
      timed.expire();
    }
  }
  const timer = setInterval(tick, EVERY_MS);
  return {
    add: (timed) => running.add(timed),
    remove: (timed) => running.delete(timed),
    tick,
    stop: () => {
      clearInterval(timer);
    },
  };
}

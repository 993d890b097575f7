export interface VirtualTimers {
  nowMs: () => number;
  /** Returns a function that cancels the timer. */
  after: (ms: number, wake: () => void) => () => void;
  /** Returns how many timers are set. */
  size: () => number;
  /** Moves on, timer by timer; awaits `settle` after each. */
  runUntil: (untilMs: number, settle: () => Promise<void>) => Promise<void>;
  /** Moves on without calling any timer: all of them are late. */
  jump: (ms: number) => void;
}

interface Timer {
  atMs: number;
  wake: () => void;
}

/** Far from zero, as the clock of a process that has run for a while. */
const BEGIN_MS = 1_000_000;

/** Creates a monotonic clock that moves only when a test moves it. */
export function createVirtualTimers(): VirtualTimers {
  const timers = new Set<Timer>();
  let nowMs = BEGIN_MS;
  const next = (untilMs: number): Timer | undefined =>
    [...timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
  return {
    nowMs: () => nowMs,
    size: () => timers.size,
    after(ms, wake) {
      const timer = { atMs: nowMs + ms, wake };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    async runUntil(untilMs, settle) {
      for (let timer = next(untilMs); timer; timer = next(untilMs)) {
        timers.delete(timer);
        nowMs = Math.max(nowMs, timer.atMs);
        timer.wake();
        await settle();
      }
      nowMs = untilMs;
    },
    jump(ms) {
      nowMs += ms;
    },
  };
}

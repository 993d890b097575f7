import { syncBuiltinESMExports } from 'node:module';
import {
  createEventQueue,
  NOTHING_TO_AWAIT,
  type Action,
  type QueuedEvent,
} from './event-queue.ts';

/**
 * The clock that all processes of a simulation share; each wall clock has an offset from it. No real time passes: when
 * all work at the current time is done, the clock advances to the next event.
 */
export interface VirtualTime {
  /** Returns the milliseconds since the simulation started. Never goes back. */
  nowMs: () => number;
  after: (delayMs: number, action: Action) => QueuedEvent;
  /** Runs events until there is none, or until `isOver` returns true before an event. Returns the number of events. */
  run: (isOver: () => boolean) => Promise<number>;
}

/** The running simulation, whose timers replace those of Node; null outside a simulation. */
let current: VirtualTime | null = null;

export function createVirtualTime(): VirtualTime {
  const queue = createEventQueue();
  let nowMs = 0;
  const time: VirtualTime = {
    nowMs: () => nowMs,
    after: (delayMs, action) => queue.add(nowMs + Math.max(0, delayMs), action),
    async run(isOver) {
      current = time;
      try {
        let events = 0;
        while (!isOver()) {
          const next = queue.take();
          if (!next) break;
          nowMs = next.atMs;
          events += 1;
          // A turn of the event loop costs more than most events, so it is skipped where possible.
          if (next.action() !== NOTHING_TO_AWAIT) await settlePromises();
        }
        return events;
      } finally {
        current = null;
      }
    },
  };
  return time;
}

const realImmediate = globalThis.setImmediate;

/** Waits one turn of the event loop, after which all promises that can continue have continued. */
function settlePromises(): Promise<void> {
  return new Promise((resolve) => realImmediate(resolve));
}

/** Starts a timer with the delay that Node would use, which is at least 1 ms. */
function startTimer(time: VirtualTime, action: Action, delayMs = 0): QueuedEvent {
  return time.after(Math.max(1, Math.ceil(delayMs)), action);
}

/** Adds an `unref` without effect: timers do not decide when a simulation ends. */
function withUnref(timer: QueuedEvent): QueuedEvent & { unref: () => QueuedEvent } {
  return Object.assign(timer, { unref: () => timer });
}

function startInterval(time: VirtualTime, action: Action, everyMs: number): QueuedEvent {
  const interval = { atMs: 0, isCancelled: false, action };
  const again = (): void => {
    if (interval.isCancelled) return;
    action();
    startTimer(time, again, everyMs);
  };
  startTimer(time, again, everyMs);
  return interval;
}

function wait<T>(time: VirtualTime, ms: number, value: T, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      resolve(value);
    };
    const timer = startTimer(time, end, ms);
    const abort = (): void => {
      timer.isCancelled = true;
      reject(new Error('aborted'));
    };
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

type Timers = Pick<
  typeof globalThis,
  'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval'
>;

/**
 * Replaces the timers and the monotonic clock of this process by those of the running simulation, or by the real ones
 * outside of one. Must be called before the simulated code is imported, because an import of `node:timers/promises` binds
 * what it finds.
 */
export function installVirtualTimers(): void {
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  const real: Timers = { setTimeout, clearTimeout, setInterval, clearInterval };
  Object.assign(globalThis, {
    setTimeout: (...given: Parameters<typeof setTimeout>) =>
      current ? withUnref(startTimer(current, given[0], given[1])) : real.setTimeout(...given),
    setInterval: (...given: Parameters<typeof setInterval>) =>
      current ? startInterval(current, given[0], given[1] ?? 1) : real.setInterval(...given),
    clearTimeout: (timer: NodeJS.Timeout | QueuedEvent | undefined) => {
      if (!cancel(timer)) real.clearTimeout(timer);
    },
    clearInterval: (timer: NodeJS.Timeout | QueuedEvent | undefined) => {
      if (!cancel(timer)) real.clearInterval(timer);
    },
  });
  const realNow = performance.now.bind(performance);
  Object.assign(performance, { now: () => current?.nowMs() ?? realNow() });
  installPromiseTimers();
}

function installPromiseTimers(): void {
  const timers = process.getBuiltinModule('node:timers/promises');
  const real = timers.setTimeout;
  const virtual = <T>(ms = 1, value?: T, options?: { signal?: AbortSignal }): Promise<T> =>
    current ? wait(current, ms, value as T, options?.signal) : real(ms, value as T, options);
  Object.assign(timers, { setTimeout: virtual });
  syncBuiltinESMExports();
}

/** Test files of the same worker that simulate nothing use these timers too: null and numbers are theirs. */
function cancel(
  timer: NodeJS.Timeout | QueuedEvent | number | null | undefined,
): timer is QueuedEvent | undefined {
  if (timer === undefined) return true;
  if (timer === null || typeof timer === 'number' || !('isCancelled' in timer)) return false;
  timer.isCancelled = true;
  return true;
}

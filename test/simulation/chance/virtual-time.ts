import { syncBuiltinESMExports } from 'node:module';
import { createEventQueue, QUIET, type Act, type QueuedEvent } from './event-queue.ts';

/**
 * The one clock that all processes of a simulation share; their wall clocks are set off against it.
 * Nothing waits: when everything has been done that can be done now, the next event is now.
 */
export interface VirtualTime {
  /** Milliseconds since the simulation began; never goes back. */
  nowMs: () => number;
  after: (delayMs: number, act: Act) => QueuedEvent;
  /** Lets everything happen; asks `isOver` after each event. Answers how many events there were. */
  run: (isOver: () => boolean) => Promise<number>;
}

/** Whose timers are used just now; null outside a simulation. */
let current: VirtualTime | null = null;

export function createVirtualTime(): VirtualTime {
  const queue = createEventQueue();
  let nowMs = 0;
  const time: VirtualTime = {
    nowMs: () => nowMs,
    after: (delayMs, act) => queue.add(nowMs + Math.max(0, delayMs), act),
    async run(isOver) {
      current = time;
      try {
        let events = 0;
        for (let next = queue.take(); next && !isOver(); next = queue.take()) {
          nowMs = next.atMs;
          events += 1;
          // A turn of the event loop costs more than most events.
          if (next.act() !== QUIET) await everythingDone();
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

/** A turn of the event loop comes after every promise that can go on. */
function everythingDone(): Promise<void> {
  return new Promise((resolve) => realImmediate(resolve));
}

/** A delay of Node's own timers; 1 ms at least, as there. */
function startTimer(time: VirtualTime, act: Act, delayMs = 0): QueuedEvent {
  return time.after(Math.max(1, Math.ceil(delayMs)), act);
}

function startInterval(time: VirtualTime, act: Act, everyMs: number): QueuedEvent {
  const interval = { atMs: 0, isCancelled: false, act };
  const again = (): void => {
    if (interval.isCancelled) return;
    act();
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
    const breakOff = (): void => {
      timer.isCancelled = true;
      reject(new Error('aborted'));
    };
    if (signal?.aborted) breakOff();
    else signal?.addEventListener('abort', breakOff, { once: true });
  });
}

type Timers = Pick<
  typeof globalThis,
  'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval'
>;

/**
 * The timers of this process, and during a simulation those of its virtual time. To be called before
 * what is simulated is imported, because an import of `node:timers/promises` keeps what it found.
 */
export function installTimers(): void {
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  const real: Timers = { setTimeout, clearTimeout, setInterval, clearInterval };
  Object.assign(globalThis, {
    setTimeout: (...given: Parameters<typeof setTimeout>) =>
      current ? startTimer(current, given[0], given[1]) : real.setTimeout(...given),
    setInterval: (...given: Parameters<typeof setInterval>) =>
      current ? startInterval(current, given[0], given[1] ?? 1) : real.setInterval(...given),
    clearTimeout: (timer: NodeJS.Timeout | QueuedEvent | undefined) => {
      if (!cancel(timer)) real.clearTimeout(timer);
    },
    clearInterval: (timer: NodeJS.Timeout | QueuedEvent | undefined) => {
      if (!cancel(timer)) real.clearInterval(timer);
    },
  });
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

function cancel(timer: NodeJS.Timeout | QueuedEvent | undefined): timer is QueuedEvent | undefined {
  if (timer === undefined) return true;
  if (!('isCancelled' in timer)) return false;
  timer.isCancelled = true;
  return true;
}

import { startTicker } from '@posthorn/platform/async/loop.ts';
import { createFairQueue } from '@posthorn/platform/async/fair-queue.ts';
import { performance } from 'node:perf_hooks';
import { createThrottle, createThrottledQueue, type Throttle } from './throttle.ts';

/**
 * Begins the next slice of the company of a request: resolves when it is its turn. `laterMs` is work of the process that
 * follows from this slice and is not part of it: the company is charged for it too.
 */
export type NextSlice = (laterMs?: number) => Promise<void>;

/**
 * Companies take turns with work that keeps the process busy for milliseconds: a part of a long list, a
 * large body. Each tick of the event loop does a few slices of it, and all other work that is ready.
 */
export interface Slices {
  /** Resolves when it is the turn of the company. The slice ends with the first `await` after it. */
  next: (companyId: string) => Promise<void>;
  /** How many slices wait. */
  waiting: () => number;
}

/**
 * How much time a company may take before the next one has its turn. Time is charged, not slices: a body of
 * 256 KiB takes 3 ms and a short list 0.1 ms, and both would count as one.
 */
const QUANTUM_MS = 1;
/**
 * The time for slices in one tick, about two of the longest. With only one slice in each tick, a
 * company got ten turns a second beside one that kept the process busy: its short lists waited for 8 s.
 */
const TICK_MS = 4;
/** The documents that a slice reads are decoded in a later tick, so time alone does not limit them. */
const MAX_SLICES = 8;

interface Slice {
  companyId: string;
  begin: () => void;
}

interface SliceDeps {
  /** Calls the functions in their order in the next tick of the event loop, each once: setImmediate. */
  inNextTick: (run: () => void) => void;
  /** Calls the function once, after this many milliseconds: setTimeout. */
  after: (ms: number, run: () => void) => void;
  throttle: Pick<Throttle, 'waitMs' | 'charge'>;
  monotonicMs: () => number;
}

/** A company that is throttled gets its turn afterwards. */
export function createSlices({ inNextTick, after, throttle, monotonicMs }: SliceDeps): Slices {
  const queue = createFairQueue<Slice>(QUANTUM_MS);
  const throttled = createThrottled(throttle, after, enqueue);
  let isPlanned = false;

  function enqueue(slice: Slice): void {
    queue.push(slice.companyId, slice);
    if (!isPlanned) planTick();
  }
  /** Plans a function for each slice: the promises of a slice settle before the next function is called. */
  function planTick(): void {
    isPlanned = queue.size() > 0;
    if (!isPlanned) return;
    const tick: Tick = { usedMs: 0, running: null };
    for (let n = 0; n < MAX_SLICES; n += 1) {
      inNextTick(() => {
        endSlice(tick);
        beginSlice(tick);
      });
    }
    inNextTick(() => {
      endSlice(tick);
      planTick();
    });
  }
  function beginSlice(tick: Tick): void {
    const slice = tick.usedMs < TICK_MS ? queue.next() : undefined;
    if (!slice) return;
    queue.charge(0, true);
    tick.running = { companyId: slice.companyId, startedMs: monotonicMs() };
    slice.begin();
  }
  function endSlice(tick: Tick): void {
    if (!tick.running) return;
    const { companyId, startedMs } = tick.running;
    const tookMs = monotonicMs() - startedMs;
    queue.chargeKey(companyId, tookMs);
    throttle.charge(companyId, tookMs);
    tick.usedMs += tookMs;
    tick.running = null;
  }

  return {
    next: (companyId) =>
      new Promise((begin) => {
        throttled.add({ companyId, begin });
      }),
    waiting: () => queue.size() + throttled.size(),
  };
}

interface ThrottledSlices {
  /** Releases a slice at once when its company may work and none of it waits. */
  add: (slice: Slice) => void;
  size: () => number;
}

function createThrottled(
  { waitMs }: Pick<Throttle, 'waitMs'>,
  after: SliceDeps['after'],
  release: (slice: Slice) => void,
): ThrottledSlices {
  const mayGo = (companyId: string): boolean => waitMs(companyId) === 0;
  const queue = createThrottledQueue({ waitMs, mayGo, after, release });
  return {
    add(slice) {
      const { companyId } = slice;
      if (mayGo(companyId) && !queue.has(companyId)) release(slice);
      else queue.add(companyId, slice);
    },
    size: queue.size,
  };
}

/** One tick of the event loop, with the slice that has begun last. */
interface Tick {
  usedMs: number;
  running: { companyId: string; startedMs: number } | null;
}

/** Returns the same parts. Each is read in a slice of its own. */
export async function* inSlices<Part>(
  parts: AsyncIterable<Part>,
  nextSlice: NextSlice,
): AsyncGenerator<Part> {
  const reading = parts[Symbol.asyncIterator]();
  try {
    for (;;) {
      await nextSlice();
      const next = await reading.next();
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await reading.return?.();
  }
}

/** How often the share of busy time is measured. */
const MEASURE_EVERY_MS = 100;

/** Creates the slices of companies, and the throttle between them. They hold until the process ends. */
export function startSlices(monotonicMs: () => number): { slices: Slices; throttle: Throttle } {
  const throttle = createThrottle(monotonicMs);
  const after = (ms: number, run: () => void): void => void setTimeout(run, ms);
  const slices = createSlices({ inNextTick: setImmediate, after, throttle, monotonicMs });
  let before = performance.eventLoopUtilization();
  startTicker(MEASURE_EVERY_MS, () => {
    const now = performance.eventLoopUtilization();
    throttle.tick(performance.eventLoopUtilization(now, before).utilization);
    before = now;
  });
  return { slices, throttle };
}

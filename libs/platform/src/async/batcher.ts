import { ImpossibleError } from '@posthorn/domain/required.ts';
import { createFairQueue } from './fair-queue.ts';

interface BatcherOptions<Item, Result> {
  /** A batch is full at this many items, or at this sum of their costs. */
  maxItems: number;
  /**
   * How long the first item of a batch waits for others while a batch may start, in milliseconds; or a
   * Linger that decides it each time.
   */
  lingerMs: number | Linger;
  maxInFlight: number;
  /** Returns the key of an item; the keys take turns in each batch. Undefined: first in, first out. */
  keyOf?: (item: Item) => string;
  /** Returns what an item counts in a batch and in the turns of its key; 1 unless given. */
  costOf?: (item: Item) => number;
  /** Runs one batch. Returns one result per item, in order. A rejection rejects the whole batch. */
  run: (items: Item[]) => Promise<Result[]>;
}

export interface Linger {
  /** Called for each arrival with the items that waited and ran before it. */
  arrived: (before: { waiting: number; running: number }) => void;
  /**
   * Returns how much longer to wait, in milliseconds, while a batch may start. `isArrival` is false when
   * a batch has just ended, and after the wait.
   */
  restMs: (batch: { waiting: number; isArrival: boolean }) => number;
  /** Called when a batch has ended. */
  ended: () => void;
}

export interface Batcher<Item, Result> {
  add: (item: Item) => Promise<Result>;
  /** Items that wait or run. */
  size: () => number;
  /** Resolves when nothing waits or runs. */
  idle: () => Promise<void>;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/** Timers have a resolution of a millisecond; a shorter wait would take a whole one. */
const SHORTEST_WAIT_MS = 0.5;

/**
 * Group commit: items that arrive while as many batches run as may are the next batch, which starts when one
 * ends. The linger runs only while a batch may start, so that no item waits for both. One batch in
 * flight with 3 ms of linger took accepts at 650/s from 25 ms (8 in flight, no linger) to 8 ms, because
 * batches, not items, cost the CPU (docs/decisions/0002-group-commit.md).
 */
export function createBatcher<Item, Result>(
  options: BatcherOptions<Item, Result>,
): Batcher<Item, Result> {
  const { maxInFlight, run } = options;
  const linger = lingerOf(options.lingerMs);
  const queue = createBatchQueue(options);
  const runs = new Set<Promise<void>>();
  const wait = createWait(pump);
  let size = 0;

  function pump(isArrival: boolean): void {
    if (runs.size >= maxInFlight || queue.size() === 0) return;
    const restMs = queue.isFull() ? 0 : linger.restMs({ waiting: queue.size(), isArrival });
    if (restMs < SHORTEST_WAIT_MS) start();
    else wait.begin(restMs);
  }

  function start(): void {
    wait.cancel();
    const batch = queue.takeBatch();
    const done = resolveAll(batch, run).then(() => {
      size -= batch.length;
      runs.delete(done);
      linger.ended();
      // Items that linger could have started before: they wait for further items, not for this batch.
      if (!wait.isRunning()) pump(false);
    });
    runs.add(done);
    pump(true);
  }

  return {
    add: (item) =>
      new Promise<Result>((resolve, reject) => {
        linger.arrived({ waiting: queue.size(), running: size - queue.size() });
        size += 1;
        queue.push({ item, resolve, reject });
        pump(true);
      }),
    size: () => size,
    async idle() {
      while (size > 0) await (runs.size > 0 ? Promise.race(runs) : nextIteration());
    },
  };
}

interface Wait {
  /** Does nothing when a wait runs. */
  begin: (ms: number) => void;
  isRunning: () => boolean;
  cancel: () => void;
}

function createWait(end: (isArrival: false) => void): Wait {
  let timer: NodeJS.Timeout | undefined;
  const cancel = (): void => {
    clearTimeout(timer);
    timer = undefined;
  };
  return {
    begin(ms) {
      timer ??= setTimeout(() => {
        cancel();
        end(false);
      }, ms);
    },
    isRunning: () => timer !== undefined,
    cancel,
  };
}

interface BatchQueue<Item, Result> {
  push: (waiting: Waiting<Item, Result>) => void;
  takeBatch: () => Waiting<Item, Result>[];
  size: () => number;
  isFull: () => boolean;
}

function createBatchQueue<Item, Result>({
  maxItems,
  keyOf,
  costOf = () => 1,
}: BatcherOptions<Item, Result>): BatchQueue<Item, Result> {
  // With one key no turn ever ends.
  const queue = createFairQueue<Waiting<Item, Result>>(keyOf ? 1 : Infinity);
  let waitingCost = 0;
  return {
    push(waiting) {
      waitingCost += costOf(waiting.item);
      queue.push(keyOf?.(waiting.item) ?? '', waiting);
    },
    takeBatch() {
      const batch: Waiting<Item, Result>[] = [];
      let cost = 0;
      for (let next = queue.next(); next && cost < maxItems; next = queue.next()) {
        const own = costOf(next.item);
        queue.charge(own, true);
        batch.push(next);
        cost += own;
      }
      waitingCost -= cost;
      return batch;
    },
    size: queue.size,
    isFull: () => waitingCost >= maxItems,
  };
}

function lingerOf(linger: number | Linger): Linger {
  if (typeof linger !== 'number') return linger;
  const nothing = (): void => undefined;
  return { arrived: nothing, restMs: ({ isArrival }) => (isArrival ? linger : 0), ended: nothing };
}

/** One iteration of the event loop, while a linger has not ended. */
function nextIteration(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function resolveAll<Item, Result>(
  batch: Waiting<Item, Result>[],
  run: (items: Item[]) => Promise<Result[]>,
): Promise<void> {
  try {
    const results = await run(batch.map(({ item }) => item));
    if (results.length !== batch.length) {
      throw new ImpossibleError(`${results.length} results for a batch of ${batch.length}`);
    }
    results.forEach((result, index) => {
      batch[index]?.resolve(result);
    });
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}

interface LingerBounds {
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

interface Arrival {
  /** Time since the previous arrival. */
  gapMs: number;
  /** It is of a client that sends again after each response. */
  isReply: boolean;
}

/**
 * Returns the usual interval after one more arrival (exponentially weighted). An item of a client that sends again
 * after each response counts as after a pause, however soon it comes: nobody else will come while it waits.
 */
export function nextInterval(
  intervalMs: number,
  { gapMs, isReply }: Arrival,
  maxLingerMs: number,
): number {
  const longestMs = LONGEST * maxLingerMs;
  const seenMs = isReply ? longestMs : Math.min(Math.max(0, gapMs), longestMs);
  return intervalMs + (seenMs - intervalMs) * WEIGHT;
}

/** A client that sends again after each response does so within this time. */
const REPLY_WITHIN_MS = 3;
/**
 * Nearly all of the last arrivals came alone and so soon: they are of one client. At 200/s without a client of that kind
 * it is less than half of them.
 */
const ONE_CLIENT = 0.8;

/**
 * Lingers when several items are expected, and not for a client that waits for each response before it sends again.
 * `monotonicMs` is the clock of the process.
 */
export function createAdaptiveLinger(bounds: LingerBounds, monotonicMs: () => number): Linger {
  let intervalMs = LONGEST * bounds.maxLingerMs;
  let firstAtMs = 0;
  let lastAtMs = 0;
  let endedAtMs = -Infinity;
  let replies = 1;
  return {
    arrived({ waiting, running }) {
      const nowMs = monotonicMs();
      const isSoon = waiting + running === 0 && nowMs - endedAtMs <= REPLY_WITHIN_MS;
      replies += ((isSoon ? 1 : 0) - replies) * WEIGHT;
      const arrival = { gapMs: nowMs - lastAtMs, isReply: isSoon && replies > ONE_CLIENT };
      intervalMs = nextInterval(intervalMs, arrival, bounds.maxLingerMs);
      if (waiting === 0) firstAtMs = nowMs;
      lastAtMs = nowMs;
    },
    restMs({ waiting }) {
      const nowMs = monotonicMs();
      const [waitedMs, quietMs] = [nowMs - firstAtMs, nowMs - lastAtMs];
      return restOfLinger({ intervalMs, waitedMs, quietMs, waiting }, bounds);
    },
    ended() {
      endedAtMs = monotonicMs();
    },
  };
}

import { createTurns } from './turns.ts';

export interface BatcherOptions<Item, Result> {
  /** A batch is full at this many items, or at this sum of their costs. */
  maxItems: number;
  /**
   * How long the first item of a batch waits for company when a slot is free, in milliseconds; or
   * what decides it anew each time.
   */
  lingerMs: number | Linger;
  maxInFlight: number;
  /** Whose item it is: the keys take turns in each batch. Undefined: first come, first served. */
  keyOf?: (item: Item) => string;
  /** What an item takes of a batch and of its key's turns; 1 unless told. */
  costOf?: (item: Item) => number;
  /** Runs one batch; answers one result per item, in order. A rejection rejects the whole batch. */
  run: (items: Item[]) => Promise<Result[]>;
}

export interface Linger {
  /** Told of each arrival: what waited and ran before it. */
  arrived: (before: { waiting: number; running: number }) => void;
  /**
   * How much longer to wait, in milliseconds, while a slot is free. `isArrival` is false when a slot
   * has just come free, and after the wait.
   */
  restMs: (batch: { waiting: number; isArrival: boolean }) => number;
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

/** Timers are a millisecond apart; a shorter wait would become one. */
const SHORTEST_WAIT_MS = 0.5;

/**
 * Natural group commit: what arrives while every slot is busy is the next batch, started by the
 * slot that comes free. The linger runs only while a slot is free, so that it overlaps with nothing
 * it would add to. One in flight with 3 ms of linger took accepts at 650/s from 25 ms (8 in flight,
 * none) to 8 ms, because batches, not items, cost the CPU (docs/decisions/0002-group-commit.md).
 */
export function createBatcher<Item, Result>(
  options: BatcherOptions<Item, Result>,
): Batcher<Item, Result> {
  const { maxInFlight, run } = options;
  const linger = lingerOf(options.lingerMs);
  const line = createLine(options);
  const runs = new Set<Promise<void>>();
  const wait = createWait(pump);
  let size = 0;

  function pump(isArrival: boolean): void {
    if (runs.size >= maxInFlight || line.size() === 0) return;
    const restMs = line.isFull() ? 0 : linger.restMs({ waiting: line.size(), isArrival });
    if (restMs < SHORTEST_WAIT_MS) start();
    else wait.begin(restMs);
  }

  function start(): void {
    wait.cancel();
    const batch = line.takeBatch();
    const done = settleAll(batch, run).then(() => {
      size -= batch.length;
      runs.delete(done);
      pump(false);
    });
    runs.add(done);
    pump(true);
  }

  return {
    add: (item) =>
      new Promise<Result>((resolve, reject) => {
        linger.arrived({ waiting: line.size(), running: size - line.size() });
        size += 1;
        line.push({ item, resolve, reject });
        pump(true);
      }),
    size: () => size,
    async idle() {
      while (size > 0) await (runs.size > 0 ? Promise.race(runs) : tick());
    },
  };
}

interface Wait {
  /** A second one that begins changes nothing. */
  begin: (ms: number) => void;
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
    cancel,
  };
}

interface Line<Item, Result> {
  push: (waiting: Waiting<Item, Result>) => void;
  takeBatch: () => Waiting<Item, Result>[];
  size: () => number;
  isFull: () => boolean;
}

function createLine<Item, Result>({
  maxItems,
  keyOf,
  costOf = () => 1,
}: BatcherOptions<Item, Result>): Line<Item, Result> {
  // With one key nobody has to go to the end.
  const turns = createTurns<Waiting<Item, Result>>(keyOf ? 1 : Infinity);
  let waitingCost = 0;
  return {
    push(waiting) {
      waitingCost += costOf(waiting.item);
      turns.push(keyOf?.(waiting.item) ?? '', waiting);
    },
    takeBatch() {
      const batch: Waiting<Item, Result>[] = [];
      let cost = 0;
      for (let next = turns.next(); next && cost < maxItems; next = turns.next()) {
        const own = costOf(next.item);
        turns.charge(own, true);
        batch.push(next);
        cost += own;
      }
      waitingCost -= cost;
      return batch;
    },
    size: turns.size,
    isFull: () => waitingCost >= maxItems,
  };
}

function lingerOf(linger: number | Linger): Linger {
  if (typeof linger !== 'number') return linger;
  return { arrived: () => undefined, restMs: ({ isArrival }) => (isArrival ? linger : 0) };
}

/** One turn of the event loop: a linger that has not ended yet. */
function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function settleAll<Item, Result>(
  batch: Waiting<Item, Result>[],
  run: (items: Item[]) => Promise<Result[]>,
): Promise<void> {
  try {
    const results = await run(batch.map(({ item }) => item));
    batch.forEach(({ resolve }, index) => {
      resolve(results[index] as Result);
    });
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}

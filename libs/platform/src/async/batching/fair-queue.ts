import { createFifo, type Fifo } from '../queues/fifo.ts';

/** Items that wait, each under a key. The keys take turns; the items of a key leave in order. */
export interface FairQueue<Item> {
  push: (key: string, item: Item) => void;
  /** Returns the item whose turn it is; undefined when nothing waits. Does not remove it. */
  next: () => Item | undefined;
  /** Charges the key of the item that `next` returned last. `isDone` removes that item. */
  charge: (cost: number, isDone: boolean) => void;
  /** Charges a key for an item that it had before; without effect when nothing of it waits. */
  chargeKey: (key: string, cost: number) => void;
  /** Keeps a key from its turns, with all items that it has and gets, until `unpark`. */
  park: (key: string) => void;
  unpark: (key: string) => void;
  /** The keys that are parked. */
  parked: () => Iterable<string>;
  /** How many items wait, without those of parked keys. */
  size: () => number;
}

interface KeyQueue<Item> {
  key: string;
  items: Fifo<Item>;
  /** What the key may still cost before its turn ends. Below zero it owes. */
  credit: number;
}

interface Turns<Item> {
  quantum: number;
  /** A map keeps the order in which its keys were set: the first one has the turn. */
  byKey: Map<string, KeyQueue<Item>>;
  parked: Map<string, KeyQueue<Item>>;
  size: number;
}

/**
 * Deficit round-robin, paid afterwards: a key whose credit is used up goes to the end and gets
 * `quantum` more. A costly item puts its key into debt, and the key is passed over until that is paid.
 * A key that waits alone gets everything. The debt of a key is forgotten when it has no items left.
 */
export function createFairQueue<Item>(quantum: number): FairQueue<Item> {
  const turns: Turns<Item> = { quantum, byKey: new Map(), parked: new Map(), size: 0 };
  return {
    push(key, item) {
      push(turns, key, item);
    },
    next: () => next(turns),
    charge(cost, isDone) {
      const queue = first(turns);
      if (!queue) return;
      queue.credit -= cost;
      if (!isDone) return;
      queue.items.shift();
      turns.size -= 1;
      if (queue.items.size() === 0) turns.byKey.delete(queue.key);
    },
    chargeKey(key, cost) {
      const queue = turns.byKey.get(key);
      if (queue) queue.credit -= cost;
    },
    park(key) {
      turns.size -= move(key, turns.byKey, turns.parked);
    },
    unpark(key) {
      turns.size += move(key, turns.parked, turns.byKey);
    },
    parked: () => turns.parked.keys(),
    size: () => turns.size,
  };
}

function first<Item>({ byKey }: Turns<Item>): KeyQueue<Item> | undefined {
  for (const queue of byKey.values()) return queue;
  return undefined;
}

function push<Item>(turns: Turns<Item>, key: string, item: Item): void {
  const { quantum, byKey, parked } = turns;
  const known = byKey.get(key) ?? parked.get(key);
  const queue = known ?? { key, items: createFifo<Item>(), credit: quantum };
  queue.items.push(item);
  if (!known) byKey.set(key, queue);
  if (!parked.has(key)) turns.size += 1;
}

function next<Item>(turns: Turns<Item>): Item | undefined {
  let queue = first(turns);
  while (queue && queue.credit <= 0) {
    queue.credit += turns.quantum;
    turns.byKey.delete(queue.key);
    turns.byKey.set(queue.key, queue);
    queue = first(turns);
  }
  return queue?.items.peek();
}

/** Returns how many items the key has. */
function move<Item>(
  key: string,
  from: Map<string, KeyQueue<Item>>,
  to: Map<string, KeyQueue<Item>>,
): number {
  const queue = from.get(key);
  if (!queue) return 0;
  from.delete(key);
  to.set(key, queue);
  return queue.items.size();
}

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
  size: () => number;
}

interface KeyQueue<Item> {
  key: string;
  items: Fifo<Item>;
  /** What the key may still cost before its turn ends. Below zero it owes. */
  credit: number;
}

/**
 * Deficit round-robin, paid afterwards: a key whose credit is used up goes to the end and gets
 * `quantum` more. A costly item puts its key into debt, and the key is passed over until that is paid.
 * A key that waits alone gets everything. The debt of a key is forgotten when it has no items left.
 */
export function createFairQueue<Item>(quantum: number): FairQueue<Item> {
  // A map keeps the order in which its keys were set: the first one has the turn.
  const byKey = new Map<string, KeyQueue<Item>>();
  let size = 0;

  function first(): KeyQueue<Item> | undefined {
    for (const queue of byKey.values()) return queue;
    return undefined;
  }

  function endTurn(queue: KeyQueue<Item>): void {
    queue.credit += quantum;
    byKey.delete(queue.key);
    byKey.set(queue.key, queue);
  }

  return {
    push(key, item) {
      size += 1;
      const queue = byKey.get(key) ?? { key, items: createFifo<Item>(), credit: quantum };
      queue.items.push(item);
      if (queue.items.size() === 1) byKey.set(key, queue);
    },
    next() {
      let queue = first();
      while (queue && queue.credit <= 0) {
        endTurn(queue);
        queue = first();
      }
      return queue?.items.peek();
    },
    charge(cost, isDone) {
      const queue = first();
      if (!queue) return;
      queue.credit -= cost;
      if (!isDone) return;
      queue.items.shift();
      size -= 1;
      if (queue.items.size() === 0) byKey.delete(queue.key);
    },
    chargeKey(key, cost) {
      const queue = byKey.get(key);
      if (queue) queue.credit -= cost;
    },
    size: () => size,
  };
}

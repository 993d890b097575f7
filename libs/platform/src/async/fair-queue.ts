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
  /** The cost that the key has left before its turn ends. Below zero it owes. */
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

/**
 * A queue in constant time: `shift` of an array of 50,000 items moves all of them. Items can also be
 * taken from the end.
 */
export interface Fifo<T> {
  push: (item: T) => void;
  peek: () => T | undefined;
  shift: () => T | undefined;
  peekLast: () => T | undefined;
  pop: () => T | undefined;
  size: () => number;
}

/** When this many entries at the front are free, the array is shortened. */
const COMPACT_AT = 1_024;

export function createFifo<T>(): Fifo<T> {
  let items: (T | undefined)[] = [];
  let first = 0;
  return {
    push: (item) => {
      items.push(item);
    },
    peek: () => items[first],
    shift() {
      const item = items[first];
      if (first === items.length) return undefined;
      items[first] = undefined;
      first += 1;
      if (first === items.length || (first >= COMPACT_AT && first * 2 >= items.length)) {
        items = items.slice(first);
        first = 0;
      }
      return item;
    },
    peekLast: () => (items.length === first ? undefined : items.at(-1)),
    pop: () => (items.length === first ? undefined : items.pop()),
    size: () => items.length - first,
  };
}

/** Something that waits for a free place: the queue of an endpoint. */
interface Waiter {
  companyId: string;
}

/** Decides what gets the next free place. */
export interface PlaceOrder<T extends Waiter> {
  /** Appends it to the order of its company, unless it waits there already. */
  add: (waiter: T) => void;
  remove: (waiter: T) => void;
  /** Removes and returns what is next; null when nothing waits. Companies that are not `mayGo` keep their turn. */
  next: (mayGo?: (companyId: string) => boolean) => T | null;
}

/**
 * Companies take turns, and so do the endpoints of a company. No place is kept free for a company that
 * waits for none: a single one gets every place.
 */
export function createPlaceOrder<T extends Waiter>(): PlaceOrder<T> {
  // A Map and a Set keep insertion order: what was served goes to the end.
  const companies = new Map<string, Set<T>>();
  return {
    add(waiter) {
      const known = companies.get(waiter.companyId);
      if (known) known.add(waiter);
      else companies.set(waiter.companyId, new Set([waiter]));
    },
    remove(waiter) {
      const waiters = companies.get(waiter.companyId);
      waiters?.delete(waiter);
      if (waiters?.size === 0) companies.delete(waiter.companyId);
    },
    next(mayGo) {
      for (const [companyId, waiters] of companies) {
        if (mayGo && !mayGo(companyId)) continue;
        companies.delete(companyId);
        for (const waiter of waiters) {
          waiters.delete(waiter);
          if (waiters.size > 0) companies.set(companyId, waiters);
          return waiter;
        }
      }
      return null;
    },
  };
}

/** Returns the items in slices of at most `size`, in their order; none for no items. */
export function slicesOf<Item>(items: readonly Item[], size: number): Item[][] {
  const slices: Item[][] = [];
  for (let from = 0; from < items.length; from += size) slices.push(items.slice(from, from + size));
  return slices;
}

import { Gauge, type Registry } from 'prom-client';

export interface MemoryBudgets {
  /** Adds a part, whose `usedBytes` is called at each scrape. Throws when the part was added before. */
  add: (part: string, budgetBytes: number, usedBytes: () => number) => void;
}

interface Part {
  part: string;
  bytes: () => number;
}

/**
 * Shows the budget of each cache, queue and buffer of a process, and how much of it is used. The numbers
 * are estimates from lengths: they show which part grows, not the size of the heap.
 */
export function createMemoryBudgets(registry: Registry): MemoryBudgets {
  const budgets: Part[] = [];
  const used: Part[] = [];
  expose(registry, {
    name: 'posthorn_memory_budget_bytes',
    help: 'Bytes that a part of the process may use, estimated.',
    parts: budgets,
  });
  expose(registry, {
    name: 'posthorn_memory_used_bytes',
    help: 'Bytes that a part of the process uses, by the same estimate.',
    parts: used,
  });
  return {
    add(part, budgetBytes, usedBytes) {
      if (budgets.some((budget) => budget.part === part))
        throw new Error(`${part} has a budget already`);
      budgets.push({ part, bytes: () => budgetBytes });
      used.push({ part, bytes: usedBytes });
    },
  };
}

interface Shown {
  name: string;
  help: string;
  parts: readonly Part[];
}

function expose(registry: Registry, { name, help, parts }: Shown): void {
  new Gauge({
    name,
    help,
    labelNames: ['part'],
    registers: [registry],
    collect() {
      for (const { part, bytes } of parts) this.set({ part }, bytes());
    },
  });
}

/** A budget that many keys share, so that none of them can use all of it. */
export interface Shares {
  /** True when the key may use `amount` more. */
  hasRoom: (key: string, amount: number) => boolean;
  /** Counts the amount, even without room. */
  add: (key: string, amount: number) => void;
  remove: (key: string, amount: number) => void;
  heldBy: (key: string) => number;
  used: () => number;
}

/** A map that loses and gets its only key with each request was 2 % of the gateway at 650 messages/s. */
const KEPT_KEYS = 1_000;

/**
 * A key may use as much as is left free: half of the budget when it is the only one, a third each when
 * there are two. So something is always free for a new key ("dynamic threshold", Choudhury and Hahne
 * 1998, with a factor of one).
 */
export function createShares(budget: number): Shares {
  const held = new Map<string, number>();
  let used = 0;
  const heldBy = (key: string): number => held.get(key) ?? 0;

  function change(key: string, amount: number): void {
    used += amount;
    const rest = heldBy(key) + amount;
    if (rest === 0 && held.size > KEPT_KEYS) held.delete(key);
    else held.set(key, rest);
  }

  return {
    hasRoom: (key, amount) => heldBy(key) + amount <= budget - used - amount,
    add: change,
    remove(key, amount) {
      change(key, -amount);
    },
    heldBy,
    used: () => used,
  };
}

/** The memory that one record uses while it is handled. */
export interface Held {
  /** Changes how many bytes the record carries. */
  setTo: (bytes: number) => void;
  release: () => void;
}

/** Counts the memory of the records that are handled at the moment. */
export interface RecordMemory {
  /** Counts a record that carries `bytes`, and an estimate of what is kept about it. */
  hold: (bytes: number) => Held;
  usedBytes: () => number;
  /** The used share of the budget; above 1 when it is exceeded. */
  usedShare: () => number;
  /** False from when the budget is exhausted until a quarter of it is free again. */
  hasRoom: () => boolean;
}

/** Ids, headers, promises and the entry in a queue, estimated. */
const RECORD_BYTES = 2_048;
/**
 * After the budget was exhausted, there is room again at this share. A fetch brings hundreds of records,
 * and those that are not handled are fetched again: with a single bound each finished record cost a fetch.
 */
const ROOM_AGAIN_AT = 0.75;

export function createRecordMemory(budgetBytes: number): RecordMemory {
  let usedBytes = 0;
  let wasFull = false;
  const note = (changeBytes: number): void => {
    usedBytes += changeBytes;
    if (usedBytes >= budgetBytes) wasFull = true;
    else if (usedBytes <= budgetBytes * ROOM_AGAIN_AT) wasFull = false;
  };
  return {
    hold(bytes) {
      let heldBytes = RECORD_BYTES + bytes;
      note(heldBytes);
      const change = (newBytes: number): void => {
        note(newBytes - heldBytes);
        heldBytes = newBytes;
      };
      return {
        setTo: (carriedBytes) => {
          change(RECORD_BYTES + carriedBytes);
        },
        release: () => {
          change(0);
        },
      };
    },
    usedBytes: () => usedBytes,
    usedShare: () => usedBytes / budgetBytes,
    hasRoom: () => !wasFull,
  };
}

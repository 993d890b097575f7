/** One budget that many keys share, so that none of them can use it up alone. */
export interface Shares {
  /** Whether the key may hold `amount` more. */
  hasRoom: (key: string, amount: number) => boolean;
  /** Counts it, whether there is room or not. */
  add: (key: string, amount: number) => void;
  remove: (key: string, amount: number) => void;
  heldBy: (key: string) => number;
  used: () => number;
}

/**
 * A key may hold as much as is left free: half of the budget when it is alone, a third when there
 * are two of its kind. Something is always free for a key that has nothing yet ("dynamic threshold",
 * Choudhury and Hahne 1998, with a factor of one).
 */
export function createShares(budget: number): Shares {
  const held = new Map<string, number>();
  let used = 0;
  const heldBy = (key: string): number => held.get(key) ?? 0;

  function change(key: string, amount: number): void {
    used += amount;
    const rest = heldBy(key) + amount;
    if (rest === 0) held.delete(key);
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

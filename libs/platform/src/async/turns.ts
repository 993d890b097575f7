/** Items that wait in lines, one line for each key. The keys take turns; a line is first in, first out. */
export interface Turns<Item> {
  push: (key: string, item: Item) => void;
  /** The item whose turn it is; undefined when nothing waits. */
  next: () => Item | undefined;
  /** Charges the key of the item that `next` has answered; `isDone` takes the item out of its line. */
  charge: (cost: number, isDone: boolean) => void;
  size: () => number;
}

interface Line<Item> {
  key: string;
  items: Item[];
  /** What the key may still take before the turn passes on; below zero it owes. */
  credit: number;
}

/**
 * Deficit round-robin, paid afterwards: a key whose credit is used up goes to the end and gets
 * `quantum` more. A costly item puts its key into debt, and it is passed over until that is paid.
 * A key that waits alone gets everything. What a key owes is forgotten when its line is empty.
 */
export function createTurns<Item>(quantum: number): Turns<Item> {
  // A map keeps the order in which its keys were set: the first line has the turn.
  const lines = new Map<string, Line<Item>>();
  let size = 0;

  function first(): Line<Item> | undefined {
    for (const line of lines.values()) return line;
    return undefined;
  }

  function passOn(line: Line<Item>): void {
    line.credit += quantum;
    lines.delete(line.key);
    lines.set(line.key, line);
  }

  return {
    push(key, item) {
      size += 1;
      const line = lines.get(key);
      if (line) line.items.push(item);
      else lines.set(key, { key, items: [item], credit: quantum });
    },
    next() {
      let line = first();
      while (line && line.credit <= 0) {
        passOn(line);
        line = first();
      }
      return line?.items[0];
    },
    charge(cost, isDone) {
      const line = first();
      if (!line) return;
      line.credit -= cost;
      if (!isDone) return;
      line.items.shift();
      size -= 1;
      if (line.items.length === 0) lines.delete(line.key);
    },
    size: () => size,
  };
}

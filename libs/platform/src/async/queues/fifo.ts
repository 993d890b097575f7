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

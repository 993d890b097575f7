import { LRUCache } from 'lru-cache';

/** Keeps open what is costly to open, such as a client with its connections. */
export interface ClosingCache<Value extends object> {
  /** Opens it unless it is open. */
  get: (key: string, open: () => Value) => Value;
}

/** Calls `close` for the least recently used when more than `max` are open. */
export function createClosingCache<Value extends object>(
  max: number,
  close: (value: Value) => void,
): ClosingCache<Value> {
  const kept = new LRUCache<string, Value>({ max, dispose: close });
  return {
    get(key, open) {
      const found = kept.get(key);
      if (found) return found;
      const opened = open();
      kept.set(key, opened);
      return opened;
    },
  };
}

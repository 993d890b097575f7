/** Keeps the newest of the entries that it is given, which may come in any order. */
export interface Newest<T> {
  add: (entry: T) => void;
  /** How many entries were added, those included that are no longer kept. */
  added: () => number;
  /** Newest first. */
  entries: () => T[];
}

/** Keeps `limit` entries, and at most twice as many in memory. */
export function createNewest<T extends { atMs: number }>(limit: number): Newest<T> {
  let kept: T[] = [];
  let added = 0;
  const cut = (): void => {
    kept = kept.sort((a, b) => b.atMs - a.atMs).slice(0, limit);
  };
  return {
    add(entry) {
      added += 1;
      kept.push(entry);
      if (kept.length >= 2 * limit) cut();
    },
    added: () => added,
    entries() {
      cut();
      return [...kept];
    },
  };
}

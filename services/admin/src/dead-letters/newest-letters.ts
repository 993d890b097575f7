/** Keeps the newest so many of what it is given in any order, and little more than these in memory. */
export interface Newest<T> {
  add: (entry: T) => void;
  /** How many were given. */
  seen: () => number;
  /** Newest first. */
  entries: () => T[];
}

export function createNewest<T extends { atMs: number }>(limit: number): Newest<T> {
  let kept: T[] = [];
  let seen = 0;
  const cut = (): void => {
    kept = kept.sort((a, b) => b.atMs - a.atMs).slice(0, limit);
  };
  return {
    add(entry) {
      seen += 1;
      kept.push(entry);
      if (kept.length >= 2 * limit) cut();
    },
    seen: () => seen,
    entries() {
      cut();
      return [...kept];
    },
  };
}

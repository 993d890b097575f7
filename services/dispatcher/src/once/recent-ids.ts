export interface RecentIds {
  add: (id: string) => void;
  has: (id: string) => boolean;
}

/** Remembers at least the newest `count` ids, and at most twice as many. */
export function createRecentIds(count: number): RecentIds {
  let newer = new Set<string>();
  let older = new Set<string>();
  return {
    add(id) {
      if (newer.size >= count) {
        older = newer;
        newer = new Set();
      }
      newer.add(id);
    },
    has: (id) => newer.has(id) || older.has(id),
  };
}

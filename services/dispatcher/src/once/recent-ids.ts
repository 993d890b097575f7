export interface RecentIds {
  add: (id: string) => void;
  has: (id: string) => boolean;
}

/**
 * A record may be stored twice: a producer got no response and sent it again, or the former owner of
 * its partition released it too. The copy comes within seconds; this covers 33 s at 1,500 attempts/s.
 */
export const REMEMBERED_IDS = 50_000;

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

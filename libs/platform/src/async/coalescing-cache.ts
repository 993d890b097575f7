import { LRUCache } from 'lru-cache';

/** Remembers what was found, for a time; lets concurrent look-ups of one key share one load. */
export interface CoalescingCache<Value extends object> {
  /** Null when `load` finds nothing; that is not remembered. A rejection of `load` is passed on. */
  get: (key: string, load: () => Promise<Value | null>) => Promise<Value | null>;
  /** A load under way still answers those who asked before, and is not remembered. */
  forget: (key: string) => void;
  forgetAll: () => void;
  /** The sum of sizes that is kept now; loads under way are not in it. */
  usedSize: () => number;
}

export interface CacheBounds<Value> {
  /** The sum of sizes that is kept; the least recently used go first. */
  maxSize: number;
  sizeOf: (value: Value) => number;
  /** For how long a value is kept, or what tells it by the value. Undefined: for ever. */
  ttlMs?: number | ((value: Value) => number);
  /** Counts from above 0; undefined: the clock of the process. */
  monotonicMs?: () => number;
}

/**
 * Loads under way are kept beside the LRU cache, not in it: lru-cache evicts its own fetches first
 * when values grow large, and rejects them (seen with 500 payloads of 250 kB waiting at once).
 */
export function createCoalescingCache<Value extends object>(
  bounds: CacheBounds<Value>,
): CoalescingCache<Value> {
  const kept = openCache(bounds);
  const purgeLater = createPurge(kept);
  const { ttlMs = 0 } = bounds;
  const ttlOf = typeof ttlMs === 'number' ? () => ttlMs : ttlMs;
  const loading = new Map<string, Promise<Value | null>>();

  function start(key: string, load: () => Promise<Value | null>): Promise<Value | null> {
    const isCurrent = (): boolean => loading.get(key) === found;
    const found: Promise<Value | null> = load()
      .then((value) => {
        if (value && isCurrent()) {
          kept.set(key, value, { ttl: ttlOf(value) });
          purgeLater();
        }
        return value;
      })
      .finally(() => {
        if (isCurrent()) loading.delete(key);
      });
    loading.set(key, found);
    return found;
  }

  return {
    get(key, load) {
      const value = kept.get(key);
      return value ? Promise.resolve(value) : (loading.get(key) ?? start(key, load));
    },
    forget(key) {
      kept.delete(key);
      loading.delete(key);
    },
    forgetAll() {
      kept.clear();
      loading.clear();
    },
    usedSize: () => kept.calculatedSize,
  };
}

/** Over 50,000 webhooks one look takes 5 ms. */
const PURGE_EVERY_MS = 10_000;

function openCache<Value extends object>({
  maxSize,
  sizeOf,
  monotonicMs = () => performance.now(),
}: CacheBounds<Value>): LRUCache<string, Value> {
  return new LRUCache({
    maxSize,
    sizeCalculation: sizeOf,
    perf: { now: monotonicMs },
    ttlResolution: 0,
  });
}

/**
 * lru-cache drops an expired value when it is asked for again, so a process at rest would keep all
 * that its last minute remembered. Returns what is called with each new value.
 */
function createPurge(kept: LRUCache<string, object>): () => void {
  let timer: NodeJS.Timeout | null = null;
  const purge = (): void => {
    timer = null;
    kept.purgeStale();
    if (kept.size > 0) schedule();
  };
  const schedule = (): void => {
    timer ??= setTimeout(purge, PURGE_EVERY_MS).unref();
  };
  return schedule;
}

import { LRUCache } from 'lru-cache';

/** Caches what was found for a time. Concurrent look-ups of one key share one load. */
interface CoalescingCache<Value extends object> {
  /** Resolves to null when `load` finds nothing, which is not cached. Rejects when `load` does. */
  get: (key: string, load: () => Promise<Value | null>) => Promise<Value | null>;
  /** A running load still resolves for its callers, and its result is not cached. */
  forget: (key: string) => void;
  forgetAll: () => void;
  /** The sum of sizes of the cached values; running loads are not in it. */
  usedSize: () => number;
}

interface CacheBounds<Value> {
  /** The largest sum of sizes; the least recently used values are evicted first. */
  maxSize: number;
  sizeOf: (value: Value) => number;
  /** How long a value is cached, or a function of the value. Undefined: for ever. */
  ttlMs?: number | ((value: Value) => number);
  /** Returns milliseconds above 0; the clock of the process unless given. */
  monotonicMs?: () => number;
}

/**
 * Running loads are kept beside the LRU cache, not in it: lru-cache evicts its own fetches first when
 * values grow large, and rejects them (seen with 500 payloads of 250 kB waiting at once).
 */
export function createCoalescingCache<Value extends object>(
  bounds: CacheBounds<Value>,
): CoalescingCache<Value> {
  const kept = openCache(bounds);
  const purgeAfter = createPurge(kept);
  const { ttlMs = 0 } = bounds;
  const ttlOf = typeof ttlMs === 'number' ? () => ttlMs : ttlMs;
  const loading = new Map<string, Promise<Value | null>>();

  function start(key: string, load: () => Promise<Value | null>): Promise<Value | null> {
    const isCurrent = (): boolean => loading.get(key) === found;
    const found: Promise<Value | null> = load()
      .then((value) => {
        if (value && isCurrent()) {
          const ttl = ttlOf(value);
          kept.set(key, value, { ttl });
          purgeAfter(ttl);
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

/** A purge of 50,000 webhooks takes 5 ms. */
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
 * lru-cache drops an expired value only when it is asked for again, so an idle process would keep all
 * that it cached in its last minute. Returns a function to call with the time to live of each new
 * value; purges until the last of them has expired, and values without one start none.
 */
function createPurge(kept: { purgeStale: () => boolean }): (ttlMs: number) => void {
  let timer: NodeJS.Timeout | null = null;
  let purgesLeft = 0;
  const schedule = (): void => {
    timer ??= setTimeout(purge, PURGE_EVERY_MS).unref();
  };
  const purge = (): void => {
    timer = null;
    purgesLeft -= 1;
    kept.purgeStale();
    if (purgesLeft > 0) schedule();
  };
  return (ttlMs) => {
    if (ttlMs === 0) return;
    // One more, because the first may come soon after the value.
    purgesLeft = Math.max(purgesLeft, Math.ceil(ttlMs / PURGE_EVERY_MS) + 1);
    schedule();
  };
}

/** Keeps open what is costly to open, such as a client with its connections. */
interface ClosingCache<Value extends object> {
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

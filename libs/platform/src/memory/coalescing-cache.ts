import { LRUCache } from 'lru-cache';

interface CacheBounds<Value> {
  /** The largest sum of sizes; the least recently used values are evicted first. */
  maxSize: number;
  sizeOf: (value: Value) => number;
  /** How long a value is cached, or a function of the value. Undefined: for ever. */
  ttlMs?: number | ((value: Value) => number);
  /** While it returns true for a value, that is cached for longer: `forget` is called when one of its sources changes. */
  isFollowed?: (value: Value) => boolean;
  /** Returns the ids of the documents that the value was made of, besides its key. */
  sourcesOf?: (value: Value) => readonly string[];
  /** Returns milliseconds above 0; the clock of the process unless given. */
  monotonicMs?: () => number;
}

/**
 * Caches what was found for a time. Concurrent look-ups of one key share one load, unless its result has changed since.
 *
 * Running loads are kept beside the LRU cache, not in it: lru-cache evicts its own fetches first when
 * values grow large, and rejects them (seen with 500 payloads of 250 kB waiting at once).
 */
export class CoalescingCache<Value extends object> {
  readonly #bounds: CacheBounds<Value>;
  readonly #sourcesOf: (value: Value) => readonly string[];
  readonly #monotonicMs: () => number;
  readonly #kept: LRUCache<string, Value>;
  readonly #bySource: KeysBySource<Value>;
  readonly #purgeAfter: (ttlMs: number) => void;
  readonly #loading = new Map<string, Load<Value>>();
  readonly #forgotten = new ForgottenWhileLoading();
  readonly #counts = { hit: 0, miss: 0 };

  constructor(bounds: CacheBounds<Value>) {
    this.#bounds = bounds;
    this.#sourcesOf = bounds.sourcesOf ?? (() => []);
    this.#monotonicMs = bounds.monotonicMs ?? (() => performance.now());
    this.#bySource = new KeysBySource(this.#sourcesOf);
    this.#kept = openCache(bounds, this.#bySource, this.#monotonicMs);
    // An entry that is followed stays until the room is needed.
    this.#purgeAfter = bounds.isFollowed ? () => undefined : createPurge(this.#kept);
  }

  /** Resolves to null when `load` finds nothing, which is not cached. Rejects when `load` does. */
  get(key: string, load: () => Promise<Value | null>): Promise<Value | null> {
    const value = this.#find(key);
    this.#counts[value ? 'hit' : 'miss'] += 1;
    if (value) return Promise.resolve(value);
    const running = this.#loading.get(key);
    const isShared = running && this.#isRecent(running);
    return isShared ? this.#join(running, key, load) : this.#load(key, load);
  }

  /**
   * Drops the value with this key, and all values that it is a source of. A running load still resolves for its callers,
   * and its result is not cached.
   */
  forget(keyOrSource: string): void {
    this.#forgotten.note(keyOrSource);
    for (const key of [keyOrSource, ...this.#bySource.keysOf(keyOrSource)]) {
      this.#kept.delete(key);
      this.#loading.delete(key);
    }
  }

  forgetAll(): void {
    this.#kept.clear();
    this.#loading.clear();
  }

  /** The sum of sizes of the cached values; running loads are not in it. */
  usedSize(): number {
    return this.#kept.calculatedSize;
  }

  /** Look-ups that found a cached value, and those that did not. */
  counts(): Readonly<Record<'hit' | 'miss', number>> {
    return this.#counts;
  }

  #find(key: string): Value | undefined {
    const value = this.#kept.get(key, { allowStale: true });
    if (!value || this.#kept.getRemainingTTL(key) > 0) return value;
    if (this.#bounds.isFollowed?.(value)) return value;
    this.#kept.delete(key);
    return undefined;
  }

  /** While changes are not followed, the result of an older load is as outdated as an entry of that age. */
  #isRecent({ begunMs }: Load<Value>): boolean {
    const { isFollowed, ttlMs } = this.#bounds;
    const isBound = isFollowed !== undefined && typeof ttlMs === 'number';
    return !isBound || this.#monotonicMs() - begunMs <= ttlMs;
  }

  /** Shares a load that began before this look-up, and loads again when its result has changed meanwhile. */
  async #join(
    running: Load<Value>,
    key: string,
    load: () => Promise<Value | null>,
  ): Promise<Value | null> {
    const value = await running.found;
    if (!running.hasChanged) return value;
    // Another look-up may have begun the second load already, after the first one ended.
    return this.#loading.get(key)?.found ?? this.#load(key, load);
  }

  #load(key: string, load: () => Promise<Value | null>): Promise<Value | null> {
    const isCurrent = (): boolean => this.#loading.get(key) === running;
    const begun = this.#forgotten.begin();
    const begunMs = this.#monotonicMs();
    const found = load()
      .then((value) => {
        const sources = value && this.#sourcesOf(value);
        running.hasChanged = this.#forgotten.hasAny(sources, begun);
        if (value && isCurrent() && !running.hasChanged) this.#keep(key, value, begunMs);
        return value;
      })
      .finally(() => {
        this.#forgotten.end();
        if (isCurrent()) this.#loading.delete(key);
      });
    const running: Load<Value> = { found, begunMs, hasChanged: false };
    this.#loading.set(key, running);
    return found;
  }

  /** A document may have changed since it was read, so its time to live begins with the load. */
  #keep(key: string, value: Value, begunMs: number): void {
    const { ttlMs = 0 } = this.#bounds;
    const ttl = typeof ttlMs === 'number' ? ttlMs : ttlMs(value);
    const start = this.#bounds.isFollowed ? begunMs : this.#monotonicMs();
    this.#kept.set(key, value, { ttl, start });
    this.#purgeAfter(ttl);
  }
}

interface Load<Value> {
  found: Promise<Value | null>;
  begunMs: number;
  /** Once it has ended: whether a source of the result changed while it ran. Callers from before the change take it. */
  hasChanged: boolean;
}

/** The part of a cache that is used to forget what has changed. */
export type ForgettingCache = Pick<
  CoalescingCache<object>,
  'forget' | 'forgetAll' | 'counts' | 'usedSize'
>;

/** The keys of the cached values, by the sources of these. */
class KeysBySource<Value> {
  readonly #sourcesOf: (value: Value) => readonly string[];
  /** Most sources have one: a set for each would take more than the value. */
  readonly #keys = new Map<string, string | Set<string>>();

  constructor(sourcesOf: (value: Value) => readonly string[]) {
    this.#sourcesOf = sourcesOf;
  }

  add(key: string, value: Value): void {
    for (const source of this.#sourcesOf(value)) {
      const keys = this.#keys.get(source);
      if (keys === undefined || keys === key) this.#keys.set(source, key);
      else if (typeof keys === 'string') this.#keys.set(source, new Set([keys, key]));
      else keys.add(key);
    }
  }

  remove(key: string, value: Value): void {
    for (const source of this.#sourcesOf(value)) {
      const keys = this.#keys.get(source);
      if (typeof keys === 'object') keys.delete(key);
      if (keys === key || (typeof keys === 'object' && keys.size === 0)) this.#keys.delete(source);
    }
  }

  keysOf(source: string): readonly string[] {
    const keys = this.#keys.get(source) ?? [];
    return typeof keys === 'string' ? [keys] : [...keys];
  }
}

/** A load that takes this many changes of other documents is not cached. */
const MOST_FORGOTTEN = 10_000;

/** The sources of a value are known when it is loaded: those that have changed meanwhile are noted. */
class ForgottenWhileLoading {
  #loads = 0;
  #number = 0;
  /** Source → the number of its last change. */
  readonly #changed = new Map<string, number>();
  /** Loads that began before this change are not cached. */
  #allBefore = 0;

  /** Returns the number of the last change. */
  begin(): number {
    this.#loads += 1;
    return this.#number;
  }

  end(): void {
    this.#loads -= 1;
    if (this.#loads === 0) this.#changed.clear();
  }

  note(source: string): void {
    if (this.#loads === 0) return;
    this.#number += 1;
    if (this.#changed.size >= MOST_FORGOTTEN) {
      this.#changed.clear();
      this.#allBefore = this.#number;
    }
    this.#changed.set(source, this.#number);
  }

  /** Whether one of the sources has changed; anything at all for the sources of nothing, which are not known. */
  hasAny(sources: readonly string[] | null, begun: number): boolean {
    if (begun < this.#allBefore) return true;
    if (sources === null) return begun < this.#number;
    return sources.some((source) => (this.#changed.get(source) ?? 0) > begun);
  }
}

/** A purge of 50,000 webhooks takes 5 ms. */
const PURGE_EVERY_MS = 10_000;

function openCache<Value extends object>(
  { maxSize, sizeOf, isFollowed }: CacheBounds<Value>,
  bySource: KeysBySource<Value>,
  monotonicMs: () => number,
): LRUCache<string, Value> {
  return new LRUCache<string, Value>({
    maxSize,
    sizeCalculation: sizeOf,
    perf: { now: monotonicMs },
    ttlResolution: 0,
    // While changes are followed, values outlive their time.
    noDeleteOnStaleGet: isFollowed !== undefined,
    onInsert: (value, key) => {
      bySource.add(key, value);
    },
    dispose: (value, key) => {
      bySource.remove(key, value);
    },
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

interface ByteBounds<Value extends object> {
  maxBytes: number;
  maxPieces: number;
  sizeOf: (value: Value, key: string) => number;
}

/** Keeps what was used last, within both bounds. */
export function createByteCache<Value extends object>({
  maxBytes,
  maxPieces,
  sizeOf,
}: ByteBounds<Value>): Pick<
  LRUCache<string, Value>,
  'get' | 'peek' | 'set' | 'delete' | 'calculatedSize'
> {
  return new LRUCache<string, Value>({
    max: maxPieces,
    maxSize: maxBytes,
    sizeCalculation: sizeOf,
  });
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

import { TimeoutError, untilAborted } from '../async/pause.ts';

interface WarmUp<Key> {
  /** Names what is loaded in the log. */
  name: string;
  /** Resolves when what is loaded stays cached until it changes. */
  whenFollowed: Promise<void>;
  /** Returns what was used last, the latest first. */
  read: () => Promise<readonly Key[]>;
  /** Loads it into its cache. */
  load: (key: Key) => Promise<unknown>;
  /** Whether the cache has no room left for what is used first now. */
  isFull: () => boolean;
  logger: { info: (fields: object, text: string) => void };
  withinMs?: number;
}

/** A rolling update of ten processes takes this much longer for each of them at most. */
const WITHIN_MS = 2_000;
/** A batch for the store that is full, and another one behind it. */
const AT_ONCE = 40;

/**
 * Loads what was used last before a process counts as ready: after an update all companies are cold at once, and the first
 * message of each waits for several reads. Never rejects: what could not be loaded in two seconds is loaded when it is used.
 */
export async function warmUp<Key>(warm: WarmUp<Key>): Promise<void> {
  const { name, whenFollowed, read, load, isFull, logger, withinMs = WITHIN_MS } = warm;
  const signal = AbortSignal.timeout(withinMs);
  let loaded = 0;
  const loadAll = async (): Promise<void> => {
    await whenFollowed;
    const keys = (await read()).values();
    const loadSome = async (): Promise<void> => {
      for (const key of keys) {
        if (signal.aborted || isFull()) return;
        await load(key);
        loaded += 1;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, loadSome));
  };
  try {
    await untilAborted(loadAll(), signal);
    logger.info({ cache: name, loaded }, 'loaded what was used last');
  } catch (error) {
    const err = signal.aborted ? new TimeoutError(`not all within ${withinMs} ms`) : error;
    logger.info({ err, cache: name, loaded }, 'did not load everything that was used last');
  }
}

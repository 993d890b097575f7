import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

export interface LastUsed {
  /** Notes that the key is used now. */
  note: (keyId: string) => void;
  start: () => void;
  /** Writes what is due. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

export interface LastUsedDeps {
  /** Stores the times, each under the id of its key. */
  write: (usedAtMs: ReadonlyMap<string, number>) => Promise<void>;
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

const EVERY_MS = 5_000;
/** A key that is always in use costs one write in this time, and one look at its document for each further gateway. */
const WRITE_EVERY_MS = 60_000;
/** Keys that were used in one minute; 2 MB. The time of a further one is not written. */
const MAX_KEYS = 20_000;

/** When each API key was used last, to the minute. */
export function createLastUsed({ write, nowMs, logger }: LastUsedDeps): LastUsed {
  const unwritten = new Map<string, number>();
  const writtenAtMs = new Map<string, number>();

  async function run(): Promise<void> {
    const startedMs = nowMs();
    for (const [id, atMs] of writtenAtMs) {
      if (Math.abs(startedMs - atMs) >= WRITE_EVERY_MS) writtenAtMs.delete(id);
    }
    const due = new Map([...unwritten].filter(([id]) => !writtenAtMs.has(id)));
    if (due.size === 0) return;
    await write(due);
    for (const [id, atMs] of due) {
      writtenAtMs.set(id, startedMs);
      if (unwritten.get(id) === atMs) unwritten.delete(id);
    }
  }

  const loop = createLoop({ name: 'last use of keys', everyMs: EVERY_MS, run, logger });
  return {
    note(keyId) {
      if (unwritten.has(keyId) || unwritten.size < MAX_KEYS) unwritten.set(keyId, nowMs());
    },
    start: loop.start,
    tick: loop.tick,
    stop: loop.stop,
  };
}

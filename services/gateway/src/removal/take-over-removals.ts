import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Removal, RemovalStore } from '@posthorn/platform/mongo/removals.ts';

/** The removals at which this process works. */
interface Work {
  running: ReadonlyMap<string, Promise<void>>;
  begin: (removal: Removal) => Promise<void>;
  signal: AbortSignal;
}

/** Removals at which a process works at the same time; more of them wait for room. */
const MAX_RUNNING = 100;

/** Begins what other processes have left, one round at a time: who asks meanwhile waits for that one. */
export function createTakeOver(
  { removals, logger }: { removals: Pick<RemovalStore, 'list'>; logger: Pick<Logger, 'warn'> },
  work: Work,
): () => Promise<void> {
  let round: Promise<void> | null = null;
  const takeOver = () =>
    beginAll(removals, work)
      .catch((error: unknown) => {
        if (!work.signal.aborted) logger.warn({ err: error }, 'removals cannot be listed');
      })
      .finally(() => (round = null));
  return () => (round ??= takeOver());
}

/** Page by page: those that other processes hold end at once and make room for the next. */
async function beginAll(
  removals: Pick<RemovalStore, 'list'>,
  { running, begin, signal }: Work,
): Promise<void> {
  for (let afterId: string | undefined = ''; afterId !== undefined;) {
    const page: Removal[] = await removals.list(afterId, MAX_RUNNING);
    for (const each of page) {
      while (running.size >= MAX_RUNNING) await Promise.race(running.values());
      if (signal.aborted) return;
      if (!running.has(each._id)) void begin(each);
    }
    afterId = page.at(-1)?._id;
  }
}

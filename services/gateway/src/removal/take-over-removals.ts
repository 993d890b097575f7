import type { RemovalStore } from '@posthorn/platform/mongo/removals.ts';
import type { Removal } from '@posthorn/domain/company/removal.ts';

/** The removals that this process works on. */
interface Work {
  running: ReadonlyMap<string, Promise<void>>;
  start: (removal: Removal) => Promise<void>;
  signal: AbortSignal;
}

/** Removals that a process works on at the same time. */
const MAX_RUNNING = 100;

/**
 * Starts the removals that other processes have left unfinished, page by page. One that another process
 * holds ends at once, so that it delays no other. Rejects when the removals cannot be listed.
 */
export async function takeOverRemovals(
  removals: Pick<RemovalStore, 'list'>,
  { running, start, signal }: Work,
): Promise<void> {
  for (let afterId: string | undefined = ''; afterId !== undefined;) {
    const page: Removal[] = await removals.list(afterId, MAX_RUNNING);
    for (const each of page) {
      while (running.size >= MAX_RUNNING) await Promise.race(running.values());
      if (signal.aborted) return;
      if (!running.has(each.id)) void start(each);
    }
    afterId = page.at(-1)?.id;
  }
}

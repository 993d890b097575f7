import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { Removal, RemovalStore } from '@posthorn/platform/mongo/companies/removals.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';

/** The project, app or webhook that is removed, with everything under it. */
export interface Root {
  companyId: string;
  kind: 'project' | 'app' | 'webhook';
  id: string;
}

/** Resolves false when the company has no such project, app or webhook. */
export type RemoveTree = (root: Root) => Promise<boolean>;

export interface RemoveTreeDeps {
  removals: Pick<RemovalStore, 'hasRoot' | 'insert' | 'removeRoot' | 'isRunning'>;
  invalidate: Invalidate;
  /** Starts the work now instead of within a second. */
  wake: () => void;
  newId: (prefix: IdPrefix) => string;
  monotonicMs: () => number;
  sleep: (ms: number) => Promise<unknown>;
}

/** Most removals end within 0.1 s. Of others the rest follows after the response. */
const RESPOND_WITHIN_MS = 2_000;
const POLL_MS = { min: 10, max: 200 };

/**
 * Stores a note of the removal, then removes the root. The retry service removes everything under it. From the response on
 * nothing can be created under the root.
 */
export function createRemoveTree(deps: RemoveTreeDeps): RemoveTree {
  const { removals, invalidate, wake, newId, monotonicMs } = deps;
  return async ({ companyId, kind, id }) => {
    const respondByMs = monotonicMs() + RESPOND_WITHIN_MS;
    const removal = { id: newId('rmv'), companyId, kind, rootId: id };
    if (!(await removals.hasRoot(removal))) return false;
    await removals.insert(removal);
    await removals.removeRoot(removal);
    await invalidate({ companyId, id });
    wake();
    await untilEnded(deps, removal, respondByMs);
    return true;
  };
}

/** A client that reads what was under the root finds nothing of it, unless there is much. */
async function untilEnded(
  { removals, monotonicMs, sleep }: RemoveTreeDeps,
  removal: Removal,
  untilMs: number,
): Promise<void> {
  for (let pollMs = POLL_MS.min; ; pollMs = Math.min(pollMs * 2, POLL_MS.max)) {
    const leftMs = untilMs - monotonicMs();
    if (leftMs <= 0 || !(await removals.isRunning(removal))) return;
    await sleep(Math.min(pollMs, leftMs));
  }
}

import type { Removal, RemovalStore } from '@posthorn/platform/mongo/companies/removals.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import {
  type ClaimedWork,
  type ClaimedWorkDeps,
  createClaimedWork,
} from '@posthorn/platform/work/claimed-work.ts';

export interface RemovalsDeps extends Pick<
  ClaimedWorkDeps<Removal>,
  'newClaim' | 'nowMs' | 'sleep' | 'logger'
> {
  removals: Omit<RemovalStore, 'insert' | 'isRunning' | 'hasRoot'>;
  invalidate: Invalidate;
}

/** Documents per write: 100,000 webhooks are 100 short writes, between which the event loop is free. */
const STEP = 1_000;
const SLOTS = { ofAll: 100, ofCompany: 10 };

/**
 * Removes everything under a project, an app or a webhook that a client has deleted. The gateway has stored the note and
 * removed the root, so nothing can be created under it any more. Each step may be repeated.
 */
export function createRemovals(deps: RemovalsDeps): ClaimedWork {
  return createClaimedWork({
    ...deps,
    name: 'removals',
    notes: deps.removals,
    slots: SLOTS,
    async work(removal, { signal }) {
      await removeTree(deps, removal, signal);
      return null;
    },
    fieldsOf: ({ id: removalId, kind, rootId }) => ({
      removalId,
      ...(kind === 'webhook' ? { webhookId: rootId } : { rootId }),
    }),
  });
}

async function removeTree(
  deps: RemovalsDeps,
  removal: Removal,
  signal: AbortSignal,
): Promise<void> {
  const { removals, invalidate } = deps;
  await removals.removeRoot(removal);
  await invalidate({ companyId: removal.companyId, id: removal.rootId });
  if (removal.kind === 'webhook') await cancelAll(deps, removal, [removal.rootId], signal);
  await removePages(deps, removal, appsUnder(deps, removal), signal);
  await removePages(deps, removal, webhooksUnder(deps, removal, signal), signal);
  await removals.finish(removal);
}

interface Pages {
  /** Returns the ids of the next page; empty when none is left. */
  list: () => Promise<string[]>;
  /** Removes what the page names, so that the next page has others. */
  remove: (ids: readonly string[]) => Promise<void>;
}

async function removePages(
  { invalidate }: RemovalsDeps,
  { companyId }: Removal,
  { list, remove }: Pages,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const ids = await list();
    if (ids.length === 0) return;
    await remove(ids);
    await invalidate(...ids.map((id) => ({ companyId, id })));
  }
}

function appsUnder({ removals }: RemovalsDeps, removal: Removal): Pages {
  return {
    list: () => removals.appsUnder(removal, STEP),
    remove: (ids) => removals.removeApps(removal.companyId, ids),
  };
}

/**
 * Cancels deliveries before it removes their webhooks: after a crash in between, the webhooks are still
 * found. An attempt that fails after the removal finds no webhook when it is settled, which cancels its
 * delivery.
 */
function webhooksUnder(deps: RemovalsDeps, removal: Removal, signal: AbortSignal): Pages {
  return {
    list: () => deps.removals.webhooksUnder(removal, STEP),
    async remove(ids) {
      await cancelAll(deps, removal, ids, signal);
      await deps.removals.removeWebhooks(removal.companyId, ids);
    },
  };
}

async function cancelAll(
  { removals, nowMs }: RemovalsDeps,
  { companyId }: Removal,
  webhookIds: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const step = { limit: STEP, atMs: nowMs() };
    if ((await removals.cancelPending(companyId, webhookIds, step)) < STEP) return;
  }
}

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
/** How long a removal goes on while others wait for its slot. */
const SLICE_MS = 3_000;

/**
 * Removes everything under a project, an app or a webhook that a client has deleted. The gateway has stored the note and
 * removed the root, so nothing can be created under it any more. Each step may be repeated.
 */
export function createRemovals(deps: RemovalsDeps): ClaimedWork {
  const { nowMs } = deps;
  return createClaimedWork({
    ...deps,
    name: 'removals',
    notes: deps.removals,
    slots: SLOTS,
    async work(removal, { signal, isWanted }) {
      const untilMs = nowMs() + SLICE_MS;
      for await (const _step of stepsOf(deps, removal)) {
        signal.throwIfAborted();
        if (nowMs() > untilMs && isWanted()) return nowMs();
      }
      return null;
    },
    fieldsOf: ({ id: removalId, kind, rootId }) => ({
      removalId,
      ...(kind === 'webhook' ? { webhookId: rootId } : { rootId }),
    }),
  });
}

/** Does the removal, and yields after each step. */
async function* stepsOf(deps: RemovalsDeps, removal: Removal): AsyncGenerator<void> {
  const { removals, invalidate } = deps;
  const { companyId, rootId } = removal;
  await removals.removeRoot(removal);
  await invalidate({ companyId, id: rootId });
  if (removal.kind === 'webhook') yield* cancelSteps(deps, companyId, [rootId]);
  while ((await removals.removeCatalogue(removal, STEP)) > 0) yield;
  yield* pageSteps(deps, removal, {
    list: () => removals.appsUnder(removal, STEP),
    async *remove(ids) {
      await removals.removeApps(companyId, ids);
      yield;
    },
  });
  // Deliveries are cancelled before their webhooks are removed: after a crash in between, the webhooks are still found. An
  // attempt that fails after the removal finds no webhook when it is settled, which cancels its delivery.
  yield* pageSteps(deps, removal, {
    list: () => removals.webhooksUnder(removal, STEP),
    async *remove(ids) {
      yield* cancelSteps(deps, companyId, ids);
      await removals.removeWebhooks(companyId, ids);
    },
  });
  await removals.finish(removal);
}

interface Pages {
  /** Returns the ids of the next page; empty when none is left. */
  list: () => Promise<string[]>;
  /** Removes what the page names, so that the next page has others. */
  remove: (ids: readonly string[]) => AsyncGenerator<void>;
}

async function* pageSteps(
  { invalidate }: RemovalsDeps,
  { companyId }: Removal,
  { list, remove }: Pages,
): AsyncGenerator<void> {
  for (let ids = await list(); ids.length > 0; ids = await list()) {
    yield* remove(ids);
    await invalidate(...ids.map((id) => ({ companyId, id })));
    yield;
  }
}

async function* cancelSteps(
  { removals, nowMs }: RemovalsDeps,
  companyId: string,
  webhookIds: readonly string[],
): AsyncGenerator<void> {
  for (let found = STEP; found === STEP;) {
    const step = { limit: STEP, atMs: nowMs() };
    found = await removals.cancelPending(companyId, webhookIds, step);
    yield;
  }
}

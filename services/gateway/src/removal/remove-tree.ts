import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { Removal, RemovalStore } from '@posthorn/platform/mongo/removals.ts';
import { EVERYTHING, type Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import { createTakeOver } from './take-over-removals.ts';

/** What is removed, with everything under it. */
export interface Root {
  companyId: string;
  kind: 'project' | 'app' | 'webhook';
  id: string;
}

/** Resolves false when there is no such thing of this company. */
export type RemoveTree = (root: Root) => Promise<boolean>;

export interface RemovalDeps {
  /** Names this process as the holder of leases. */
  holder: string;
  removals: RemovalStore;
  leases: LeaseStore;
  invalidate: (invalidation: Invalidation) => Promise<void>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

export interface Removals {
  remove: RemoveTree;
  start: () => void;
  /** Takes over what another process began and did not finish. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

/** One step of a large tree: 100,000 webhooks are 100 short writes, and the loop breathes in between. */
const STEP = 1_000;
const LEASE_MS = 15_000;
const EVERY_MS = 5_000;
/** Longest wait of the client: what is left then goes on behind the answer. */
const ANSWER_WITHIN_MS = 25_000;

/**
 * Removes in this order: a note of what is to be done, the root, what lies under it. A crash leaves
 * the note, and whoever finds it goes on; from the answer on nothing under the root can be made.
 */
export function createRemovals(deps: RemovalDeps): Removals {
  const { removals, logger, newId } = deps;
  const running = new Map<string, Promise<void>>();
  const closing = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  function begin(removal: Removal): Promise<void> {
    const done = removeAll(deps, removal, closing.signal)
      .catch((error: unknown) => {
        if (!closing.signal.aborted) report(logger, removal._id, error);
      })
      .finally(() => running.delete(removal._id));
    running.set(removal._id, done);
    return done;
  }

  async function remove({ companyId, kind, id }: Root): Promise<boolean> {
    const removal = { _id: newId('rmv'), companyId, kind, rootId: id };
    if (!(await removals.hasRoot(removal))) return false;
    await removals.insert(removal);
    await removals.removeRoot(removal);
    // A round may have found the note and begun already.
    await atMost(ANSWER_WITHIN_MS, running.get(removal._id) ?? begin(removal));
    return true;
  }

  const takeOver = createTakeOver(deps, { running, begin, signal: closing.signal });

  async function tick(): Promise<void> {
    await takeOver();
    await Promise.all(running.values());
  }

  return {
    remove,
    start() {
      timer = setInterval(() => void tick(), EVERY_MS);
    },
    tick,
    async stop() {
      clearInterval(timer);
      closing.abort();
      await Promise.all(running.values());
    },
  };
}

async function atMost(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([work, late]);
  clearTimeout(timer);
}

function report(logger: RemovalDeps['logger'], removalId: string, error: unknown): void {
  if (error instanceof TakenOverError) return;
  logger.warn({ err: error, removalId }, 'removal waits for the next round');
}

/** Another process works on it: nothing to report. */
class TakenOverError extends Error {}

/** Throws when this process is to stop or another one has taken over; the note stays then. */
type GoOn = () => Promise<void>;

async function removeAll(deps: RemovalDeps, removal: Removal, signal: AbortSignal): Promise<void> {
  const { leases, holder, removals, invalidate } = deps;
  const lease = `removal/${removal._id}`;
  const goOn: GoOn = async () => {
    signal.throwIfAborted();
    if (!(await leases.hold(lease, holder, LEASE_MS))) throw new TakenOverError();
  };
  await goOn();
  await removals.removeRoot(removal);
  await invalidate({ companyId: removal.companyId, id: removal.rootId });
  if (removal.kind === 'webhook') await cancelAll(deps, removal, [removal.rootId], goOn);
  await removeApps(deps, removal, goOn);
  await removeWebhooks(deps, removal, goOn);
  await removals.finish(removal);
  await leases.release(lease, holder);
}

async function removeApps(deps: RemovalDeps, removal: Removal, goOn: GoOn): Promise<void> {
  const { companyId } = removal;
  for (;;) {
    await goOn();
    const ids = await deps.removals.appsUnder(removal, STEP);
    if (ids.length === 0) return;
    await deps.removals.removeApps(companyId, ids);
    await deps.invalidate({ companyId, id: EVERYTHING });
  }
}

/**
 * Cancels before it removes: after a crash in between the webhooks are still there to be found. An
 * attempt that fails meanwhile finds no webhook when it is settled, and ends its delivery.
 */
async function removeWebhooks(deps: RemovalDeps, removal: Removal, goOn: GoOn): Promise<void> {
  const { companyId } = removal;
  for (;;) {
    await goOn();
    const ids = await deps.removals.webhooksUnder(removal, STEP);
    if (ids.length === 0) return;
    await cancelAll(deps, removal, ids, goOn);
    await deps.removals.removeWebhooks(companyId, ids);
    await deps.invalidate({ companyId, id: EVERYTHING });
  }
}

async function cancelAll(
  { removals, nowMs }: RemovalDeps,
  { companyId }: Removal,
  webhookIds: readonly string[],
  goOn: GoOn,
): Promise<void> {
  for (;;) {
    await goOn();
    const step = { limit: STEP, atMs: nowMs() };
    if ((await removals.cancelPending(companyId, webhookIds, step)) < STEP) return;
  }
}

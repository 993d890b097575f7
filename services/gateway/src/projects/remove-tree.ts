import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import { TimeoutError, withTimeout } from '@posthorn/platform/async/pause.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import type {
  CompanyRemoval,
  Removal,
  RemovalStore,
} from '@posthorn/platform/mongo/companies/removals.ts';
import { ifLeaseIsFree, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

/** The project, app or webhook that is removed, with everything under it. */
export interface Root {
  companyId: string;
  kind: 'project' | 'app' | 'webhook';
  id: string;
}

/** Resolves false when the company has no such project, app or webhook. */
export type RemoveTree = (root: Root) => Promise<boolean>;

export interface RemovalDeps {
  /** Names this process as the holder of leases. */
  holder: string;
  removals: RemovalStore;
  leases: LeaseStore;
  invalidate: Invalidate;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

export interface Removals {
  remove: RemoveTree;
  start: () => void;
  /** Takes over the removals that another process has left unfinished. Resolves when they have ended here. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

/** Documents per write: 100,000 webhooks are 100 short writes, between which the event loop is free. */
const STEP = 1_000;
const EVERY_MS = 5_000;
/**
 * Time for the whole removal while the client waits; the remaining work continues after the response. A request may take
 * 8 s.
 */
const RESPOND_WITHIN_MS = 5_000;

/**
 * Stores a record of the removal, then removes the root, then everything under it. After a crash the
 * record is left, and the process that finds it continues. From the response on nothing can be created
 * under the root.
 */
export function createRemovals(deps: RemovalDeps): Removals {
  const { removals, logger, newId } = deps;
  const running = new Map<string, Promise<void>>();

  function start(removal: Removal): Promise<void> {
    const done = removeTree(deps, removal, loop.signal)
      .catch((error: unknown) => {
        if (!loop.signal.aborted) logFailure(logger, removal, error);
      })
      .finally(() => running.delete(removal.id));
    running.set(removal.id, done);
    return done;
  }

  async function remove({ companyId, kind, id }: Root): Promise<boolean> {
    const respondByMs = monotonicClockMs() + RESPOND_WITHIN_MS;
    const removal = { id: newId('rmv'), companyId, kind, rootId: id };
    if (!(await removals.hasRoot(removal))) return false;
    await removals.insert(removal);
    await removals.removeRoot(removal);
    // A round may have found the record and started already.
    const work = running.get(removal.id) ?? start(removal);
    await endOrTimeout(work, Math.max(0, respondByMs - monotonicClockMs()));
    return true;
  }

  const loop = createLoop({
    name: 'removals',
    everyMs: EVERY_MS,
    run: (signal) => takeOverRemovals(removals, { running, start, signal }),
    logger,
  });

  return {
    remove,
    start: loop.start,
    async tick() {
      await loop.tick();
      await Promise.all(running.values());
    },
    async stop() {
      await loop.stop();
      await Promise.all(running.values());
    },
  };
}

/** Resolves when the work ends, and after `timeoutMs` while it continues. */
async function endOrTimeout(work: Promise<void>, timeoutMs: number): Promise<void> {
  await withTimeout(work, timeoutMs).catch((error: unknown) => {
    if (!(error instanceof TimeoutError)) throw error;
  });
}

function logFailure(
  logger: RemovalDeps['logger'],
  { id: removalId, companyId, kind, rootId }: Removal,
  error: unknown,
): void {
  if (error instanceof TakenOverError) return;
  const root = kind === 'webhook' ? { webhookId: rootId } : { rootId };
  logger.warn(
    { err: error, removalId, companyId, ...root },
    'removal failed, the next round tries again',
  );
}

/** Another process works on the removal. */
class TakenOverError extends Error {}

/** Throws when this process stops, and TakenOverError when another one has the lease. The record stays then. */
type CheckLease = () => Promise<void>;

async function removeTree(deps: RemovalDeps, removal: Removal, signal: AbortSignal): Promise<void> {
  const { leases, holder, removals, invalidate } = deps;
  await ifLeaseIsFree(leases, { name: `removal/${removal.id}`, holder }, async (renew) => {
    const checkLease: CheckLease = async () => {
      signal.throwIfAborted();
      if (!(await renew())) throw new TakenOverError();
    };
    signal.throwIfAborted();
    await removals.removeRoot(removal);
    await invalidate({ companyId: removal.companyId, id: removal.rootId });
    if (removal.kind === 'webhook') await cancelAll(deps, removal, [removal.rootId], checkLease);
    await removePages(deps, removal, appsUnder(deps, removal), checkLease);
    await removePages(deps, removal, webhooksUnder(deps, removal, checkLease), checkLease);
    await removals.finish(removal);
  });
}

interface Pages {
  /** Returns the ids of the next page; empty when none is left. */
  list: () => Promise<string[]>;
  /** Removes what the page names, so that the next page has others. */
  remove: (ids: readonly string[]) => Promise<void>;
}

async function removePages(
  { invalidate }: RemovalDeps,
  { companyId }: Removal,
  { list, remove }: Pages,
  checkLease: CheckLease,
): Promise<void> {
  for (;;) {
    await checkLease();
    const ids = await list();
    if (ids.length === 0) return;
    await remove(ids);
    await invalidate(...ids.map((id) => ({ companyId, id })));
  }
}

function appsUnder({ removals }: RemovalDeps, removal: Removal): Pages {
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
function webhooksUnder(deps: RemovalDeps, removal: Removal, checkLease: CheckLease): Pages {
  return {
    list: () => deps.removals.webhooksUnder(removal, STEP),
    async remove(ids) {
      await cancelAll(deps, removal, ids, checkLease);
      await deps.removals.removeWebhooks(removal.companyId, ids);
    },
  };
}

async function cancelAll(
  { removals, nowMs }: RemovalDeps,
  { companyId }: Removal,
  webhookIds: readonly string[],
  checkLease: CheckLease,
): Promise<void> {
  for (;;) {
    await checkLease();
    const step = { limit: STEP, atMs: nowMs() };
    if ((await removals.cancelPending(companyId, webhookIds, step)) < STEP) return;
  }
}

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
async function takeOverRemovals(
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

export interface CompanyRemovalsDeps {
  /** Names this process as the holder of leases. */
  holder: string;
  companies: Pick<CompanyLife, 'listRemovable' | 'endRemoval'>;
  documents: CompanyRemoval;
  leases: LeaseStore;
  logger: Pick<Logger, 'info' | 'warn'>;
}

interface CompanyRemovals {
  start: () => void;
  /** Removes the documents of the companies that are being removed. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}
/**
 * Counted from the beginning of the removal. All work for the company has ended by then: every process knows of it
 * after two seconds, an attempt takes 60 s at most, a request 10 s, and a step that adds up counts its lease of 15 s.
 */
export const QUIET_MS = 120_000;

/**
 * Removes companies whose removal the operator has begun. The document of the company is the last that
 * goes, when a whole round has found nothing else: so a crash leaves nothing behind, nor does a sweep that
 * wrote something in between.
 */
export function createCompanyRemovals(deps: CompanyRemovalsDeps): CompanyRemovals {
  const { companies, logger } = deps;
  return createLoop({
    name: 'removal of companies',
    everyMs: EVERY_MS,
    async run(signal) {
      for (const companyId of await companies.listRemovable(QUIET_MS)) {
        if (signal.aborted) return;
        await removeCompany(deps, companyId, signal).catch((error: unknown) => {
          logger.warn({ err: error, companyId }, 'removal failed, the next round tries again');
        });
      }
    },
    logger,
  });
}

async function removeCompany(
  { companies, documents, leases, holder, logger }: CompanyRemovalsDeps,
  companyId: string,
  signal: AbortSignal,
): Promise<void> {
  const lease = { name: `company-removal/${companyId}`, holder };
  await ifLeaseIsFree(leases, lease, async (renew) => {
    let removed = 0;
    for (;;) {
      const step = await documents.removeSome(companyId, STEP);
      removed += step;
      if (step === 0) break;
      if (signal.aborted || !(await renew())) return;
    }
    if (removed === 0) await companies.endRemoval(companyId);
    const text = removed === 0 ? 'company removed' : 'removed documents of a company';
    logger.info({ companyId, removed }, text);
  });
}

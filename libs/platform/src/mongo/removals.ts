import type { Removal } from '@posthorn/domain/company.ts';
import { WEBHOOK_REMOVED } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { mongo } from 'mongoose';
import { collection } from './documents/collections.ts';
import { documentsIn, documentsOf } from './company-documents.ts';
import type { Database } from './days/days.ts';
import { readUpTo, writeByDays } from './days/read-days.ts';
import type { RemovalDocument } from './documents/documents.ts';
import { removeStats } from './stats/remove-stats.ts';

/** Removals in progress, and the steps of each. Every step may be repeated. */
export interface RemovalStore {
  insert: (removal: Removal) => Promise<void>;
  /** Unfinished removals of every company after the id `afterId` ('' for the first page), oldest first. */
  list: (afterId: string, limit: number) => Promise<Removal[]>;
  finish: (removal: Removal) => Promise<void>;
  hasRoot: (removal: Removal) => Promise<boolean>;
  /** Returns true when this call removed the root itself. */
  removeRoot: (removal: Removal) => Promise<boolean>;
  /** Returns at most `limit` ids of apps that are under a project; empty when none is left. */
  appsUnder: (removal: Removal, limit: number) => Promise<string[]>;
  /** Returns at most `limit` ids of webhooks that are under a project or an app; empty when none is left. */
  webhooksUnder: (removal: Removal, limit: number) => Promise<string[]>;
  /** With the statistics of them, as the removal of a root does. */
  removeApps: (companyId: string, appIds: readonly string[]) => Promise<void>;
  removeWebhooks: (companyId: string, webhookIds: readonly string[]) => Promise<void>;
  /** Cancels at most `limit` pending deliveries of these webhooks. Returns how many it found. */
  cancelPending: (
    companyId: string,
    webhookIds: readonly string[],
    step: { limit: number; atMs: number },
  ) => Promise<number>;
}

const ROOTS = { project: 'projects', app: 'apps', webhook: 'webhooks' } as const;

export function createRemovalStore(db: Database): RemovalStore {
  const removals = collection(db, 'removals');
  const idsOf = async (found: mongo.FindCursor<{ _id: string }>): Promise<string[]> =>
    (await found.project<{ _id: string }>({ _id: 1 }).toArray()).map(({ _id }) => _id);

  return {
    async insert(removal) {
      const { id, ...rest } = removal;
      await removals.insertOne({ _id: id, ...rest });
    },
    async list(afterId, limit) {
      const found = removals.find({ _id: { $gt: afterId } }).sort({ _id: 1 });
      return (await found.limit(limit).toArray()).map(toRemoval);
    },
    async finish({ id: _id }) {
      await removals.deleteOne({ _id });
    },
    async hasRoot({ companyId, kind, rootId: _id }) {
      return (await documentsOf(db, ROOTS[kind], companyId).findOne({ _id })) !== null;
    },
    async removeRoot({ companyId, kind, rootId: _id }) {
      await removeStats(db, companyId, [_id]);
      return (await documentsOf(db, ROOTS[kind], companyId).deleteMany({ _id })) === 1;
    },
    async appsUnder({ companyId, kind, rootId }, limit) {
      if (kind !== 'project') return [];
      return idsOf(documentsOf(db, 'apps', companyId).find({ projectId: rootId }, { limit }));
    },
    async webhooksUnder({ companyId, kind, rootId }, limit) {
      if (kind === 'webhook') return [];
      const filter = kind === 'project' ? { projectId: rootId } : { appId: rootId };
      return idsOf(documentsOf(db, 'webhooks', companyId).find(filter, { limit }));
    },
    async removeApps(companyId, ids) {
      await removeStats(db, companyId, ids);
      await documentsOf(db, 'apps', companyId).deleteMany({ _id: { $in: [...ids] } });
    },
    async removeWebhooks(companyId, ids) {
      await removeStats(db, companyId, ids);
      await documentsOf(db, 'webhooks', companyId).deleteMany({ _id: { $in: [...ids] } });
    },
    cancelPending: (companyId, webhookIds, step) => cancelPending(db, companyId, webhookIds, step),
  };
}

function toRemoval({ _id, ...rest }: RemovalDocument): Removal {
  return { id: _id, ...rest };
}

async function cancelPending(
  { days: { deliveries } }: Database,
  companyId: string,
  webhookIds: readonly string[],
  { limit, atMs }: { limit: number; atMs: number },
): Promise<number> {
  const pending = { webhookId: { $in: [...webhookIds] }, status: 'pending' as const };
  const found = await readUpTo(deliveries.within({}), limit, (documents, left) =>
    documentsIn<'deliveries'>(documents, companyId)
      .find(pending, { limit: left })
      .project<{ _id: string }>({ _id: 1 })
      .toArray(),
  );
  const cancelled = {
    status: 'cancelled' as const,
    reason: WEBHOOK_REMOVED,
    nextAttemptAt: null,
    updatedAt: new Date(atMs),
  };
  const idOf = ({ _id }: { _id: string }): string => _id;
  await writeByDays(deliveries, found, idOf, (documents, ofDay) =>
    documentsIn<'deliveries'>(documents, companyId).updateMany(
      { _id: { $in: ofDay.map(idOf) }, status: 'pending' },
      { $set: cancelled },
    ),
  );
  return found.length;
}

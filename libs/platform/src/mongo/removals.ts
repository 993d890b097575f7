import type { mongo } from 'mongoose';
import { collection } from './collections.ts';
import { documentsOf } from './company-documents.ts';
import type { RemovalDocument } from './documents.ts';

export type Removal = RemovalDocument;

/** Deletions under way, and the steps that each of them takes. Every step may be repeated. */
export interface RemovalStore {
  insert: (removal: Removal) => Promise<void>;
  /** Deletions that were begun and are not finished, of every company, behind this id; '' for the beginning. */
  list: (afterId: string, limit: number) => Promise<Removal[]>;
  finish: (removal: Removal) => Promise<void>;
  hasRoot: (removal: Removal) => Promise<boolean>;
  /** True when this call removed the root itself. */
  removeRoot: (removal: Removal) => Promise<boolean>;
  /** At most `limit` ids of what lies under the root, and what is itself a webhook; empty at the end. */
  appsUnder: (removal: Removal, limit: number) => Promise<string[]>;
  webhooksUnder: (removal: Removal, limit: number) => Promise<string[]>;
  removeApps: (companyId: string, appIds: readonly string[]) => Promise<void>;
  removeWebhooks: (companyId: string, webhookIds: readonly string[]) => Promise<void>;
  /** Cancels at most `limit` pending deliveries of these webhooks; answers how many it found. */
  cancelPending: (
    companyId: string,
    webhookIds: readonly string[],
    step: { limit: number; atMs: number },
  ) => Promise<number>;
}

const ROOTS = { project: 'projects', app: 'apps', webhook: 'webhooks' } as const;

export function createRemovalStore(db: mongo.Db): RemovalStore {
  const removals = collection(db, 'removals');
  const idsOf = async (found: mongo.FindCursor<{ _id: string }>): Promise<string[]> =>
    (await found.project<{ _id: string }>({ _id: 1 }).toArray()).map(({ _id }) => _id);

  return {
    async insert(removal) {
      await removals.insertOne(removal);
    },
    async list(afterId, limit) {
      const behind = removals.find({ _id: { $gt: afterId } });
      return behind.sort({ _id: 1 }).limit(limit).toArray();
    },
    async finish({ _id }) {
      await removals.deleteOne({ _id });
    },
    async hasRoot({ companyId, kind, rootId: _id }) {
      return (await documentsOf(db, ROOTS[kind], companyId).findOne({ _id })) !== null;
    },
    async removeRoot({ companyId, kind, rootId: _id }) {
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
      await documentsOf(db, 'apps', companyId).deleteMany({ _id: { $in: [...ids] } });
    },
    async removeWebhooks(companyId, ids) {
      await documentsOf(db, 'webhooks', companyId).deleteMany({ _id: { $in: [...ids] } });
    },
    cancelPending: (companyId, webhookIds, step) => cancelPending(db, companyId, webhookIds, step),
  };
}

async function cancelPending(
  db: mongo.Db,
  companyId: string,
  webhookIds: readonly string[],
  { limit, atMs }: { limit: number; atMs: number },
): Promise<number> {
  const deliveries = documentsOf(db, 'deliveries', companyId);
  const pending = { webhookId: { $in: [...webhookIds] }, status: 'pending' as const };
  const found = await deliveries
    .find(pending, { limit })
    .project<{ _id: string }>({ _id: 1 })
    .toArray();
  if (found.length === 0) return 0;
  await deliveries.updateMany(
    { _id: { $in: found.map(({ _id }) => _id) }, status: 'pending' },
    {
      $set: {
        status: 'cancelled',
        reason: 'webhook_deleted',
        nextAttemptAt: null,
        updatedAt: new Date(atMs),
      },
    },
  );
  return found.length;
}

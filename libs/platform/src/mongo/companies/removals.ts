import { WEBHOOK_REMOVED } from '@posthorn/domain/delivery/when-cancelled.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import {
  type CompanyDocuments,
  documentsIn,
  documentsOf,
  OWNED_COLLECTIONS,
  type UndividedName,
} from '../company-documents.ts';
import { type Database, type Days, isDayKind } from '../days/days.ts';
import { readUpTo, writeByDays } from '../days/read-days.ts';
import type { IdempotencyKeyDocument, MessageDocument, RemovalDocument } from '../documents.ts';
import { createSequenceStore } from '../messages/sequences.ts';
import { cancelUpdate } from '../messages/deliveries.ts';
import { keysOf } from '../messages/idempotency-keys.ts';
import { catalogueOf } from './event-types.ts';
import { removeStats } from '../messages/stats-documents.ts';
import type { WorkNotes } from '../work-notes.ts';
import { createWorkNotes } from '../work-notes.ts';

/** The deletion of a project, an app or a webhook with everything under it. Stored until it is done. */
export interface Removal {
  id: string;
  companyId: string;
  kind: 'project' | 'app' | 'webhook';
  /** Id of the project, app or webhook. It is deleted first, then everything under it. */
  rootId: string;
}

/** Removals in progress, and the steps of each. Every step may be repeated. */
export interface RemovalStore extends WorkNotes<Removal> {
  insert: (removal: Removal) => Promise<void>;
  /** Returns true while the removal has not ended. */
  isRunning: (removal: Removal) => Promise<boolean>;
  finish: (removal: Removal) => Promise<void>;
  hasRoot: (removal: Removal) => Promise<boolean>;
  /** Returns true when this call removed the root itself. */
  removeRoot: (removal: Removal) => Promise<boolean>;
  /** Removes at most `limit` documents of the catalogue of a project. Returns how many it removed. */
  removeCatalogue: (removal: Removal, limit: number) => Promise<number>;
  /** Returns at most `limit` ids of apps that are under a project; empty when none is left. */
  appsUnder: (removal: Removal, limit: number) => Promise<string[]>;
  /** Returns at most `limit` ids of webhooks that are under a project or an app; empty when none is left. */
  webhooksUnder: (removal: Removal, limit: number) => Promise<string[]>;
  /** Removes apps with their statistics, as the removal of a root does. */
  removeApps: (companyId: string, appIds: readonly string[]) => Promise<void>;
  removeWebhooks: (companyId: string, webhookIds: readonly string[]) => Promise<void>;
  /**
   * Cancels at most `limit` pending deliveries of these webhooks, and removes as many sequences. Returns how many it found, of
   * what there was more of.
   */
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
    ...createWorkNotes({ documents: removals, toNote: toRemoval }),
    async insert(removal) {
      const { id, ...rest } = removal;
      await removals.insertOne({ _id: id, ...rest });
    },
    isRunning: async ({ id: _id }) => (await removals.findOne({ _id })) !== null,
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
    removeCatalogue: (removal, limit) => removeCatalogue(db, removal, limit),
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

async function removeCatalogue(
  db: mongo.Db,
  { companyId, kind, rootId }: Removal,
  limit: number,
): Promise<number> {
  if (kind !== 'project') return 0;
  for (const name of ['eventTypes', 'eventTypeVersions'] as const) {
    const removed = await removeById(db, name, companyId, { limit, filter: catalogueOf(rootId) });
    if (removed > 0) return removed;
  }
  return 0;
}

function toRemoval({ _id: id, companyId, kind, rootId }: RemovalDocument): Removal {
  return { id, companyId, kind, rootId };
}

async function cancelPending(
  db: Database,
  companyId: string,
  webhookIds: readonly string[],
  { limit, atMs }: { limit: number; atMs: number },
): Promise<number> {
  const { deliveries } = db.days;
  const pending = { webhookId: { $in: [...webhookIds] }, status: 'pending' as const };
  const found = await readUpTo(deliveries.within({}), limit, (documents, left) =>
    documentsIn<'deliveries'>(documents, companyId)
      .find(pending, { limit: left })
      .project<{ _id: string }>({ _id: 1 })
      .toArray(),
  );
  const idOf = ({ _id }: { _id: string }): string => _id;
  await writeByDays(deliveries, found, idOf, (documents, ofDay) =>
    documentsIn<'deliveries'>(documents, companyId).updateMany(
      { _id: { $in: ofDay.map(idOf) }, status: 'pending' },
      cancelUpdate(WEBHOOK_REMOVED, atMs),
    ),
  );
  const removed = await createSequenceStore(db).removeOf(companyId, webhookIds, limit);
  return Math.max(found.length, removed);
}

export interface CompanyRemoval {
  /**
   * Removes about `limit` documents of the company, more when one message has more targets. Returns how
   * many it removed; 0 when nothing is left. May be repeated.
   */
  removeSome: (companyId: string, limit: number) => Promise<number>;
}

/** Deliveries go with their messages, because no index finds those that were delivered by their company. */
const BY_ID = OWNED_COLLECTIONS.filter((name): name is UndividedName => !isDayKind(name));

export function createCompanyRemoval(db: Database): CompanyRemoval {
  return {
    async removeSome(companyId, limit) {
      for (const name of BY_ID) {
        const removed = await removeById(db, name, companyId, { limit });
        if (removed > 0) return removed;
      }
      for (const documents of db.days.idempotencyKeys.all()) {
        const removed = await removeKeys(documents, companyId, limit);
        if (removed > 0) return removed;
      }
      const removed = await removeMessages(db, companyId, limit);
      return removed > 0 ? removed : removeOrphans(db.days.deliveries, companyId, limit);
    },
  };
}

async function removeById(
  db: mongo.Db,
  name: UndividedName,
  companyId: string,
  { limit, filter = {} }: { limit: number; filter?: Partial<ReturnType<typeof catalogueOf>> },
): Promise<number> {
  const documents = documentsOf(db, name, companyId);
  const page = documents.find(filter, { limit }).project<{ _id: string }>({ _id: 1 });
  const ids = (await page.toArray()).map(({ _id }) => _id);
  if (ids.length > 0) await documents.deleteMany({ _id: { $in: ids } });
  return ids.length;
}

/** Keys have no index by company: their ids begin with it. */
async function removeKeys(
  documents: mongo.Collection<IdempotencyKeyDocument>,
  companyId: string,
  limit: number,
): Promise<number> {
  const own = documentsIn<'idempotencyKeys'>(documents, companyId);
  const page = own.find({ _id: keysOf(companyId) }, { limit }).project<{ _id: string }>({ _id: 1 });
  const ids = (await page.toArray()).map(({ _id }) => _id);
  if (ids.length > 0) await own.deleteMany({ _id: { $in: ids } });
  return ids.length;
}

/** Removes the messages of one day at a time, the oldest first. */
async function removeMessages(
  { days: { messages, deliveries } }: Database,
  companyId: string,
  limit: number,
): Promise<number> {
  for (const documents of messages.within({})) {
    const own = documentsIn<'messages'>(documents, companyId);
    const removed = await removeSomeMessages(own, deliveries, companyId, limit);
    if (removed > 0) return removed;
  }
  return 0;
}

/** Deliveries first: after a crash in between their messages are still found. */
async function removeSomeMessages(
  messages: CompanyDocuments<'messages'>,
  deliveries: Days['deliveries'],
  companyId: string,
  limit: number,
): Promise<number> {
  const found = messages
    .find({}, { limit, projection: { targets: 1, addedTargets: 1 } })
    .sort({ _id: 1 });
  const ids: string[] = [];
  const deliveryIds: string[] = [];
  for await (const { _id, targets, addedTargets = [] } of found.batchSize(BATCH)) {
    ids.push(_id);
    deliveryIds.push(...deliveryIdsOf(_id, [...targets, ...addedTargets]));
    if (deliveryIds.length >= limit) break;
  }
  for (let from = 0; from < deliveryIds.length; from += limit) {
    const some = deliveryIds.slice(from, from + limit);
    await writeByDays(
      deliveries,
      some,
      (id) => id,
      (documents, ofDay) =>
        documentsIn<'deliveries'>(documents, companyId).deleteMany({ _id: { $in: [...ofDay] } }),
    );
  }
  if (ids.length > 0) await messages.deleteMany({ _id: { $in: ids } });
  return ids.length + deliveryIds.length;
}

/** Read from the server at once: 3 MB of messages to 1,000 webhooks each. */
const BATCH = 101;

function deliveryIdsOf(messageId: string, targets: MessageDocument['targets']): string[] {
  return targets.map((webhookId) => deliveryIdOf(messageId, webhookId));
}

const NOT_DELIVERED = ['pending', 'exhausted', 'cancelled'] as const;

/**
 * Deliveries whose message had expired. One that was delivered expires in the same minute, and is in no
 * index by its company.
 */
async function removeOrphans(
  deliveries: Days['deliveries'],
  companyId: string,
  limit: number,
): Promise<number> {
  for (const documents of deliveries.within({})) {
    const own = documentsIn<'deliveries'>(documents, companyId);
    for (const status of NOT_DELIVERED) {
      const page = own.find({ status }, { limit }).project<{ _id: string }>({ _id: 1 });
      const ids = (await page.toArray()).map(({ _id }) => _id);
      if (ids.length === 0) continue;
      await own.deleteMany({ _id: { $in: ids } });
      return ids.length;
    }
  }
  return 0;
}

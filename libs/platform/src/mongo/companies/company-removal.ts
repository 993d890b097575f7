import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import {
  documentsIn,
  documentsOf,
  OWNED_COLLECTIONS,
  type CompanyDocuments,
  type UndividedName,
} from '../company-documents.ts';
import type { Database, Days } from '../days/days.ts';
import { writeByDays } from '../days/read-days.ts';
import type { MessageDocument } from '../documents/documents.ts';
import { keysOf } from '../messages/idempotency-keys.ts';

export interface CompanyRemoval {
  /**
   * Removes about `limit` documents of the company, more when one message has more targets. Returns how
   * many it removed; 0 when nothing is left. May be repeated.
   */
  removeSome: (companyId: string, limit: number) => Promise<number>;
}

/** Deliveries go with their messages, because no index finds those that were delivered by their company. */
const BY_ID = OWNED_COLLECTIONS.filter(
  (name): name is UndividedName => name !== 'messages' && name !== 'deliveries',
);

export function createCompanyRemoval(db: Database): CompanyRemoval {
  return {
    async removeSome(companyId, limit) {
      for (const name of BY_ID) {
        const removed = await removeById(db, name, companyId, limit);
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
  limit: number,
): Promise<number> {
  const documents = documentsOf(db, name, companyId);
  // Keys have no index by company: their ids begin with it.
  const filter = name === 'idempotencyKeys' ? { _id: keysOf(companyId) } : {};
  const page = documents.find(filter, { limit }).project<{ _id: string }>({ _id: 1 });
  const ids = (await page.toArray()).map(({ _id }) => _id);
  if (ids.length > 0) await documents.deleteMany({ _id: { $in: ids } });
  return ids.length;
}

/** Of one day at a time, the oldest first. */
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
  const found = messages.find({}, { limit, projection: { targets: 1 } }).sort({ _id: 1 });
  const ids: string[] = [];
  const deliveryIds: string[] = [];
  for await (const { _id, targets } of found.batchSize(BATCH)) {
    ids.push(_id);
    deliveryIds.push(...deliveryIdsOf(_id, targets));
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

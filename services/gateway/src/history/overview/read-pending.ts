import { timeMsOf } from '@posthorn/domain/ids/ids.ts';
import { documentsIn, documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { readAll } from '@posthorn/platform/mongo/days/read-days.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import type { mongo } from 'mongoose';

/** Deliveries that wait for another attempt. */
export interface Pending {
  /** Counted up to MOST_COUNTED. */
  count: number;
  /** When the oldest message of one was accepted; null without any. */
  oldestAtMs: number | null;
}

export interface PendingOwner {
  companyId: string;
  appId?: string | undefined;
  webhookId?: string | undefined;
}

export type ReadPending = (owner: PendingOwner) => Promise<Pending>;

/** From an index, 10,000 take 10 ms. */
export const MOST_COUNTED = 10_000;
/** Webhooks of an app that are looked at. */
const MAX_WEBHOOKS = 200;

/** Counts in each day from the indexes of deliveries that are not delivered, of which there are few. */
export function createReadPending(db: Database): ReadPending {
  return async (owner) => {
    const { companyId } = owner;
    const webhookIds = await webhooksOf(db, owner);
    const perDay = await readAll(db.days.deliveries.within({}), (documents) =>
      pendingIn(documents, companyId, webhookIds),
    );
    return perDay.flat().reduce(sumOf, { count: 0, oldestAtMs: null });
  };
}

/** Null for all webhooks of the company. */
async function webhooksOf(
  db: Database,
  { companyId, appId, webhookId }: PendingOwner,
): Promise<string[] | null> {
  if (webhookId !== undefined) return [webhookId];
  if (appId === undefined) return null;
  const found = documentsOf(db, 'webhooks', companyId).find({ appId });
  const page = found.sort({ _id: 1 }).limit(MAX_WEBHOOKS).project<{ _id: string }>({ _id: 1 });
  return (await page.toArray()).map(({ _id }) => _id);
}

/** The oldest is looked for by webhook: an index has the deliveries of each in their order, but not those of several. */
async function pendingIn(
  documents: mongo.Collection<DeliveryDocument>,
  companyId: string,
  webhookIds: readonly string[] | null,
): Promise<Pending[]> {
  const deliveries = documentsIn<'deliveries'>(documents, companyId);
  const status = 'pending' as const;
  const read = async (filter: object, order: mongo.Sort): Promise<Pending> => {
    const count = await deliveries.count(filter, { limit: MOST_COUNTED });
    const [oldest] =
      count === 0 ? [] : await deliveries.find(filter).sort(order).limit(1).toArray();
    return { count, oldestAtMs: oldest ? timeMsOf(oldest.messageId) : null };
  };
  if (webhookIds === null) return [await read({ status }, { messageId: 1 })];
  const all = { webhookId: { $in: [...webhookIds] }, status };
  if ((await deliveries.count(all, { limit: 1 })) === 0) return [];
  return Promise.all(webhookIds.map((webhookId) => read({ webhookId, status }, { _id: 1 })));
}

function sumOf(sum: Pending, { count, oldestAtMs }: Pending): Pending {
  const times = [sum.oldestAtMs, oldestAtMs].filter((ms) => ms !== null);
  return {
    count: Math.min(sum.count + count, MOST_COUNTED),
    oldestAtMs: times.length === 0 ? null : Math.min(...times),
  };
}

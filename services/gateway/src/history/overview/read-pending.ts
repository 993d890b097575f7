import { timeMsOf } from '@posthorn/domain/ids/ids.ts';
import {
  documentsIn,
  documentsOf,
  type CompanyDocuments,
} from '@posthorn/platform/mongo/company-documents.ts';
import type { Database, Days } from '@posthorn/platform/mongo/days/days.ts';
import { countUpTo, readAll } from '@posthorn/platform/mongo/days/read-days.ts';
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
  const { deliveries } = db.days;
  return async (owner) => {
    const { companyId } = owner;
    const webhookIds = await webhooksOf(db, owner);
    const ownIn = (documents: mongo.Collection<DeliveryDocument>): Own =>
      documentsIn<'deliveries'>(documents, companyId);
    const pending = pendingOf(deliveries);
    const all = pending(webhookIds && { $in: webhookIds });
    const days = deliveries.within(deliveries.kept({}, 'dlv'));
    const { sum, first } = await countUpTo(days, MOST_COUNTED, (documents, limit) =>
      ownIn(documents).count(all, { limit }),
    );
    // A delivery is in the day of its message, so the oldest one is in the first day.
    const oldestAtMs = first && (await oldestIn(ownIn(first), pending, webhookIds));
    return { count: sum, oldestAtMs };
  };
}

type PendingFilter = (webhookId: string | { $in: string[] } | null) => object;

/** Without those that have expired. Each bound is one of the ids that the index has. */
function pendingOf(deliveries: Days['deliveries']): PendingFilter {
  const keptFrom = (prefix: 'msg' | 'dlv') => ({ $gte: deliveries.kept({}, prefix).fromId });
  const status = 'pending';
  return (webhookId) =>
    webhookId === null
      ? { status, messageId: keptFrom('msg') }
      : { status, webhookId, _id: keptFrom('dlv') };
}

type Own = CompanyDocuments<'deliveries'>;

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

/** Looked for by webhook: an index has the deliveries of each in their order, but not those of several. */
async function oldestIn(
  own: Own,
  pending: PendingFilter,
  webhookIds: readonly string[] | null,
): Promise<number | null> {
  const read = async (webhookId: string | null): Promise<string[]> => {
    const order: mongo.Sort = webhookId === null ? { messageId: 1 } : { _id: 1 };
    const oldest = own.find(pending(webhookId)).sort(order).limit(1);
    const found = await oldest.project<{ messageId: string }>({ messageId: 1 }).toArray();
    return found.map(({ messageId }) => messageId);
  };
  const found = await readAll(webhookIds ?? [null], read);
  const [oldest] = found.flat().sort();
  return oldest === undefined ? null : timeMsOf(oldest);
}

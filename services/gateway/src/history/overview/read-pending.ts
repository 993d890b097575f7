import { timeMsOf } from '@posthorn/domain/ids/ids.ts';
import {
  documentsIn,
  documentsOf,
  type CompanyDocuments,
} from '@posthorn/platform/mongo/company-documents.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
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

const PENDING = { status: 'pending' } as const;

/** Counts in each day from the indexes of deliveries that are not delivered, of which there are few. */
export function createReadPending(db: Database): ReadPending {
  return async (owner) => {
    const { companyId } = owner;
    const webhookIds = await webhooksOf(db, owner);
    const all = { ...(webhookIds && { webhookId: { $in: webhookIds } }), ...PENDING };
    const ownIn = (documents: mongo.Collection<DeliveryDocument>): Own =>
      documentsIn<'deliveries'>(documents, companyId);
    const days = db.days.deliveries.within({});
    const { sum, first } = await countUpTo(days, MOST_COUNTED, (documents, limit) =>
      ownIn(documents).count(all, { limit }),
    );
    // A delivery is in the day of its message, so the oldest one is in the first day.
    const oldestAtMs = first && (await oldestIn(ownIn(first), webhookIds));
    return { count: sum, oldestAtMs };
  };
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
async function oldestIn(own: Own, webhookIds: readonly string[] | null): Promise<number | null> {
  const read = async (filter: object, order: mongo.Sort): Promise<string[]> => {
    const oldest = own
      .find({ ...filter, ...PENDING })
      .sort(order)
      .limit(1);
    const found = await oldest.project<{ messageId: string }>({ messageId: 1 }).toArray();
    return found.map(({ messageId }) => messageId);
  };
  const found = webhookIds
    ? await readAll(webhookIds, (webhookId) => read({ webhookId }, { _id: 1 }))
    : [await read({}, { messageId: 1 })];
  const [oldest] = found.flat().sort();
  return oldest === undefined ? null : timeMsOf(oldest);
}

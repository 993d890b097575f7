import { timeMsOf } from '@posthorn/domain/ids.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
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

/** Counts from the indexes of deliveries that are not delivered, of which there are few. */
export function createReadPending(db: mongo.Db): ReadPending {
  return async ({ companyId, appId, webhookId }) => {
    const deliveries = documentsOf(db, 'deliveries', companyId);
    const status = 'pending' as const;
    if (webhookId === undefined && appId === undefined) {
      const oldest = deliveries.find({ status }).sort({ messageId: 1 }).limit(1);
      return pendingOf(await deliveries.count({ status }, { limit: MOST_COUNTED }), oldest);
    }
    const ids = webhookId === undefined ? await webhooksOf(db, companyId, appId) : [webhookId];
    const all = await Promise.all(
      ids.map(async (id) => {
        const filter = { webhookId: id, status };
        const oldest = deliveries.find(filter).sort({ _id: 1 }).limit(1);
        return pendingOf(await deliveries.count(filter, { limit: MOST_COUNTED }), oldest);
      }),
    );
    return all.reduce(sumOf, { count: 0, oldestAtMs: null });
  };
}

async function webhooksOf(
  db: mongo.Db,
  companyId: string,
  appId: string | undefined,
): Promise<string[]> {
  const found = documentsOf(db, 'webhooks', companyId).find({ appId: appId ?? null });
  const page = found.sort({ _id: 1 }).limit(MAX_WEBHOOKS).project<{ _id: string }>({ _id: 1 });
  return (await page.toArray()).map(({ _id }) => _id);
}

async function pendingOf(
  count: number,
  oldest: mongo.FindCursor<{ messageId: string }>,
): Promise<Pending> {
  const [first] = count === 0 ? [] : await oldest.toArray();
  return { count, oldestAtMs: first ? timeMsOf(first.messageId) : null };
}

function sumOf(sum: Pending, { count, oldestAtMs }: Pending): Pending {
  const times = [sum.oldestAtMs, oldestAtMs].filter((ms) => ms !== null);
  return {
    count: Math.min(sum.count + count, MOST_COUNTED),
    oldestAtMs: times.length === 0 ? null : Math.min(...times),
  };
}

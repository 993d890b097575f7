import type { DeliveryDocument } from '../documents.ts';
import type { Database } from '../days/days.ts';
import { readUpTo } from '../days/read-days.ts';

/** Who has sent to what of late, the latest first, each once. */
export interface RecentUse {
  companyIds: string[];
  /** Without global webhooks, which belong to no app. */
  apps: { companyId: string; appId: string }[];
  webhookIds: string[];
}

/** At 300 bytes each, they are read in 50 ms. */
const MOST_DELIVERIES = 5_000;
/** Of tomorrow, where a clock is ahead, of today and of yesterday. */
const DAYS = 3;
const WITHIN_MS = 1_000;

type ReadDelivery = Pick<DeliveryDocument, 'companyId' | 'appId' | 'webhookId'>;

/** Reads it from the newest deliveries, by the time of their messages. */
export async function readRecentUse(db: Database): Promise<RecentUse> {
  const { deliveries } = db.days;
  const newestDays = deliveries.within({}).slice(-DAYS).reverse();
  const found = await readUpTo(newestDays, MOST_DELIVERIES, (documents, limit) =>
    documents
      .find({}, { maxTimeMS: WITHIN_MS })
      .sort({ _id: -1 })
      .limit(limit)
      .project<ReadDelivery>({ companyId: 1, appId: 1, webhookId: 1 })
      .toArray(),
  );
  const apps = new Map(
    found.flatMap(({ companyId, appId }) => (appId === null ? [] : [[appId, companyId] as const])),
  );
  return {
    companyIds: [...new Set(found.map(({ companyId }) => companyId))],
    apps: Array.from(apps, ([appId, companyId]) => ({ companyId, appId })),
    webhookIds: [...new Set(found.map(({ webhookId }) => webhookId))],
  };
}

import { timeMsOf } from '@posthorn/domain/ids.ts';
import {
  addCounts,
  attemptsIn,
  noAttempts,
  successesIn,
  wholeSteps,
} from '@posthorn/domain/stats.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import {
  type CompanyDocuments,
  documentsIn,
  documentsOf,
} from '@posthorn/platform/mongo/company-documents.ts';
import type { Database, Days } from '@posthorn/platform/mongo/days/days.ts';
import { countUpTo, readAll } from '@posthorn/platform/mongo/days/read-days.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import type { StatsQueries } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { OpenCircuit, OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { mongo } from 'mongoose';
import { unavailable } from '../api-error.ts';
import type { Apps } from '../projects/apps.ts';
import type { ReadWebhookOutlines, WebhookOutline } from './webhook-outlines.ts';

interface CountAppsDeps {
  apps: Pick<Apps, 'existing'>;
  webhooks: Pick<WebhookStore, 'countOf'>;
  stats: Pick<StatsQueries, 'readSteps'>;
  nowMs: () => number;
}

interface AppCounts {
  appId: string;
  /** Counted up to 10,000. */
  webhooks: number;
  /** Attempts in the last 24 hours, by whole hours. */
  succeeded: number;
  failed: number;
}

const DAY_MS = 86_400_000;
const MAX_WEBHOOKS = 10_000;

/** Returns the counts of the apps that exist among these ids, in no order. */
export async function countApps(
  deps: CountAppsDeps,
  companyId: string,
  appIds: readonly string[],
): Promise<AppCounts[]> {
  const existing = await deps.apps.existing(companyId, appIds);
  return Promise.all([...existing].map((appId) => countApp(deps, companyId, appId)));
}

async function countApp(
  { webhooks, stats, nowMs }: CountAppsDeps,
  companyId: string,
  appId: string,
): Promise<AppCounts> {
  const toMs = nowMs();
  const span = wholeSteps('hour', { fromMs: toMs - DAY_MS, toMs });
  const [count, hours] = await Promise.all([
    webhooks.countOf(companyId, { appId, projectId: '' }, MAX_WEBHOOKS),
    stats.readSteps({ companyId, ownerId: appId }, 'hour', span),
  ]);
  const counts = noAttempts();
  for (const hour of hours) addCounts(counts, hour.counts);
  const succeeded = successesIn(counts);
  return { appId, webhooks: count, succeeded, failed: attemptsIn(counts) - succeeded };
}

interface CircuitsFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
}

export interface CircuitOfWebhook extends OpenCircuit {
  webhook: WebhookOutline;
}

export interface ReadCircuitsDeps {
  circuits: Pick<OpenCircuits, 'list'>;
  readOutlines: ReadWebhookOutlines;
}

/**
 * Returns the open circuits of a company, the one that opened first at the beginning; of more than MAX_LISTED any of
 * them. Throws ApiError 503 without Redis.
 */
export async function readCircuits(
  { circuits, readOutlines }: ReadCircuitsDeps,
  companyId: string,
  { appId, webhookId }: CircuitsFilter,
): Promise<CircuitOfWebhook[]> {
  const all = await circuits.list(companyId).catch(() => {
    throw unavailable('redis_unavailable');
  });
  const asked = webhookId === undefined ? all : all.filter((each) => each.webhookId === webhookId);
  const found: CircuitOfWebhook[] = [];
  for (const page of slicesOf(asked, PAGE)) {
    const ids = page.map((each) => each.webhookId);
    const outlines = await readOutlines(companyId, ids);
    for (const circuit of page) {
      const webhook = outlines.get(circuit.webhookId);
      const isAsked = webhook && (appId === undefined || webhook.appId === appId);
      if (isAsked) found.push({ ...circuit, webhook });
    }
  }
  return found.sort((one, other) => one.sinceMs - other.sinceMs);
}

/** Webhooks that are looked up at a time. */
const PAGE = 1_000;

/** Deliveries that wait for another attempt. */
export interface Pending {
  /** Counted up to MOST_COUNTED. */
  count: number;
  /** When the oldest message of one was accepted; null without any. */
  oldestAtMs: number | null;
}

interface PendingOwner {
  companyId: string;
  appId?: string | undefined;
  webhookId?: string | undefined;
}

/** From an index, 10,000 take 10 ms. */
const MOST_COUNTED = 10_000;
/** Webhooks of an app whose deliveries are counted. */
const MAX_PENDING_WEBHOOKS = 200;

/** Counts in each day, from the indexes of undelivered deliveries, which are few. */
export async function readPending(db: Database, owner: PendingOwner): Promise<Pending> {
  const { deliveries } = db.days;
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
}

type PendingFilter = (webhookId: string | { $in: string[] } | null) => object;

/** Selects the deliveries that have not expired. Each bound is one of the ids in the index. */
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
  const page = found
    .sort({ _id: 1 })
    .limit(MAX_PENDING_WEBHOOKS)
    .project<{ _id: string }>({ _id: 1 });
  return (await page.toArray()).map(({ _id }) => _id);
}

/** Searches by webhook: an index has the deliveries of each webhook in their order, but not those of several. */
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

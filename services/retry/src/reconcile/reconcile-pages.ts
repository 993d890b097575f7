import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type {
  DeliveryStore,
  SettledDelivery,
} from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type {
  CheckedMessage,
  MessageChecks,
} from '@posthorn/platform/mongo/messages/message-checks.ts';
import type {
  StuckDeliveries,
  StuckDelivery,
} from '@posthorn/platform/mongo/deliveries/stuck-deliveries.ts';
import type { WebhookStates } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import type { ReconcileMetrics } from './reconcile-metrics.ts';
import {
  drivingRecord,
  findingOf,
  unattemptedDeliveries,
  type DriveTopics,
  type Finding,
} from './reconcile-rules.ts';

export interface PageDeps {
  topics: DriveTopics;
  checks: MessageChecks;
  stuck: StuckDeliveries;
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  webhooks: WebhookStates;
  log: Pick<RecordLog, 'publish'>;
  metrics: ReconcileMetrics;
  logger: Logger;
}

/** What a pass has seen so far; `checked` counts messages, the others deliveries. */
export type Totals = Partial<Record<Finding | 'checked', number>>;

export interface PassState {
  /** The database's time when the pass began, in milliseconds since 1970. */
  nowMs: number;
  totals: Totals;
}

/** Gateways stamp what the database removes by its own clock: near the end nothing can be told missing. */
const EXPIRY_MARGIN_MS = 3_600_000;
/** A backlog of a webhook with a rate limit waits for its turns, and a copy of each would use them up. */
const LIMITED_AFTER_MS = 7 * 86_400_000;
const NAMED_IN_LOG = 5;

/** Records the deliveries that these messages should have and have not, then notes the progress. */
export async function recordMissing(
  deps: PageDeps,
  page: readonly CheckedMessage[],
  { nowMs, totals }: PassState,
): Promise<void> {
  const last = page.at(-1);
  if (!last) return;
  const all = unattemptedDeliveries(page, nowMs);
  const recorded = await deps.checks.recordedAmong(all.map(({ id }) => id));
  const missing = all.filter(({ id }) => !recorded.has(id));
  if (missing.length > 0) await insertKept(deps, missing, nowMs);
  add(totals, 'checked', page.length);
  await deps.checks.noteChecked(last.id);
}

async function insertKept(
  { checks, deliveries, logger, metrics }: PageDeps,
  missing: readonly SettledDelivery[],
  nowMs: number,
): Promise<void> {
  // Asked behind the look-up: a retention that was shortened before it is seen here.
  const keptSinceMs = nowMs - (await checks.retentionMs()) + EXPIRY_MARGIN_MS;
  const kept = missing.filter(({ createdAtMs }) => createdAtMs > keptSinceMs);
  if (kept.length === 0) return;
  await deliveries.insertAll(kept);
  // The others are counted when they are driven.
  const cancelled = kept.filter(({ status }) => status === 'cancelled').length;
  metrics.reconciled.inc({ found: 'lost_message' }, cancelled);
  const messageIds = kept.slice(0, NAMED_IN_LOG).map(({ messageId }) => messageId);
  logger.warn({ deliveries: kept.length, messageIds }, 'messages found of which no delivery is');
}

/** Publishes what drives these deliveries on, then notes on them that it did. */
export async function drive(
  { topics, log, stuck, webhooks, logger, metrics }: PageDeps,
  page: readonly StuckDelivery[],
  { nowMs, totals }: PassState,
): Promise<void> {
  if (page.length === 0) return;
  const limited = await limitedAmong(webhooks, page);
  const driven = page.filter(
    ({ webhookId, createdAtMs }) =>
      !limited.has(webhookId) || nowMs - createdAtMs > LIMITED_AFTER_MS,
  );
  const records = driven.map((delivery) => drivingRecord(topics, delivery, nowMs));
  if (records.length > 0) await log.publish(records);
  // Those that are left out as well: else they would be found first in every page.
  await stuck.noteDriven(page, nowMs);
  if (driven.length === 0) return;
  const found: Totals = {};
  for (const delivery of driven) {
    const finding = findingOf(delivery);
    metrics.reconciled.inc({ found: finding });
    add(found, finding, 1);
    add(totals, finding, 1);
  }
  const deliveryIds = driven.slice(0, NAMED_IN_LOG).map(({ id }) => id);
  logger.warn({ ...found, deliveryIds }, 'deliveries found standing still, driven again');
}

async function limitedAmong(
  webhooks: WebhookStates,
  page: readonly StuckDelivery[],
): Promise<Set<string>> {
  const states = await webhooks.statesOf([...new Set(page.map(({ webhookId }) => webhookId))]);
  return new Set([...states].filter(([, { hasRateLimit }]) => hasRateLimit).map(([id]) => id));
}

function add(totals: Totals, what: keyof Totals, count: number): void {
  totals[what] = (totals[what] ?? 0) + count;
}

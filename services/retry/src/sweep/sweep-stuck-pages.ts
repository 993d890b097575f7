import {
  unattemptedDelivery,
  type SettledDelivery,
} from '@posthorn/domain/delivery-lifecycle/settlement.ts';
import {
  remedyFor,
  type StuckCause,
  type StuckDelivery,
} from '@posthorn/domain/delivery-lifecycle/stuck-delivery.ts';
import { logFieldsOfMany } from '@posthorn/domain/records/log-fields.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { StuckDeliveries } from '@posthorn/platform/mongo/deliveries/stuck-deliveries.ts';
import type {
  CheckedMessage,
  MessageChecks,
} from '@posthorn/platform/mongo/messages/message-checks.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/company-life.ts';
import type { WebhookStates } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  expectedDeliveries,
  hasBacklog,
  isLost,
  isToBeMoved,
  remedyRecord,
  type RemedyTopics,
  type SweepTime,
} from './stuck-rules.ts';
import type { StuckMetrics } from './sweep-metrics.ts';

export interface PageDeps {
  topics: RemedyTopics;
  checks: MessageChecks;
  stuck: StuckDeliveries;
  deliveries: Pick<DeliveryStore, 'insertAll'>;
  webhooks: Pick<WebhookStates, 'statesOf'>;
  companies: Pick<CompanyLife, 'listSuspended'>;
  records: Pick<RecordLog, 'publish'>;
  metrics: StuckMetrics;
  logger: Logger;
}

/** What one sweep has done so far: `checked` counts messages, the others deliveries. */
export type Totals = Partial<Record<StuckCause | 'checked', number>>;

/** `nowMs` is the database's time when the round began. */
export interface SweepState extends SweepTime {
  totals: Totals;
}

/**
 * Inserts the deliveries of these messages that are not recorded, then stores that the messages are
 * checked. From then on a lost first attempt is found as an overdue one, so that each message has to
 * be checked only once.
 */
export async function recordMissing(
  deps: PageDeps,
  page: readonly CheckedMessage[],
  { nowMs, totals }: SweepState,
): Promise<void> {
  const last = page.at(-1);
  if (!last) return;
  const expected = expectedDeliveries(page);
  const recorded = await deps.checks.recordedAmong(expected.map(({ id }) => id));
  const missing = expected
    .filter(({ id }) => !recorded.has(id))
    .map(({ message, webhookId }) => unattemptedDelivery(message, webhookId, nowMs));
  if (missing.length > 0) await insertLost(deps, missing, nowMs);
  add(totals, 'checked', page.length);
  await deps.checks.markChecked(last.id);
}

async function insertLost(
  { checks, deliveries, logger, metrics }: PageDeps,
  missing: readonly SettledDelivery[],
  nowMs: number,
): Promise<void> {
  // Read after the look-up, so that a retention that was shortened before it is known here.
  const retentionMs = await checks.retentionMs();
  const lost = missing.filter((delivery) => isLost(delivery, nowMs, retentionMs));
  if (lost.length === 0) return;
  await deliveries.insertAll(lost);
  // The pending ones are counted when they are moved on.
  const cancelled = lost.filter(({ status }) => status === 'cancelled').length;
  metrics.moved.inc({ found: 'lost_message' }, cancelled);
  const ids = logFieldsOfMany(lost.map((delivery) => ({ ...delivery, deliveryId: delivery.id })));
  logger.warn({ deliveries: lost.length, ...ids }, 'recorded missing deliveries of messages');
}

/** Publishes what moves these deliveries on, then marks them as swept. */
export async function moveOn(
  { topics, records, stuck, webhooks, companies, logger, metrics }: PageDeps,
  page: readonly StuckDelivery[],
  { totals, ...time }: SweepState,
): Promise<void> {
  if (page.length === 0) return;
  const { nowMs } = time;
  const backlogged = await backloggedAmong(webhooks, page, time);
  const suspended = await companies.listSuspended();
  const moved = page
    // Their records wait in deferrals: each sweep would add a copy that circulates beside them.
    .filter(({ companyId }) => !suspended.has(companyId))
    .filter((delivery) => isToBeMoved(delivery, backlogged.has(delivery.webhookId), nowMs))
    .map((delivery) => ({ delivery, remedy: remedyFor(delivery) }));
  if (moved.length > 0) {
    await records.publish(
      moved.map(({ delivery, remedy }) => remedyRecord(topics, delivery, remedy, nowMs)),
    );
  }
  // All of the page, or those that are left out would be found first again and again.
  await stuck.markSwept(page, nowMs);
  if (moved.length === 0) return;
  const counts: Totals = {};
  for (const { cause } of moved.map(({ remedy }) => remedy)) {
    metrics.moved.inc({ found: cause });
    add(counts, cause, 1);
    add(totals, cause, 1);
  }
  const ids = logFieldsOfMany(
    moved.map(({ delivery }) => ({ ...delivery, deliveryId: delivery.id })),
  );
  logger.warn({ ...counts, ...ids }, 'moved stuck deliveries on');
}

async function backloggedAmong(
  webhooks: PageDeps['webhooks'],
  page: readonly StuckDelivery[],
  time: SweepTime,
): Promise<Set<string>> {
  const states = await webhooks.statesOf([...new Set(page.map(({ webhookId }) => webhookId))]);
  return new Set([...states].filter(([, state]) => hasBacklog(state, time)).map(([id]) => id));
}

function add(totals: Totals, what: keyof Totals, count: number): void {
  totals[what] = (totals[what] ?? 0) + count;
}

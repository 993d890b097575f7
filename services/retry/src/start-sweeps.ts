import { randomUUID } from 'node:crypto';
import type { TopicNames } from '@posthorn/domain/records/topics.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import { createCompanyLife } from '@posthorn/platform/mongo/companies/company-life.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createLeaseStore, type LeaseStore } from '@posthorn/platform/mongo/leases/leases.ts';
import { createMessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import { createPayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { createStuckDeliveries } from '@posthorn/platform/mongo/deliveries/stuck-deliveries.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { createDayCollections } from '@posthorn/platform/mongo/days/day-collections.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { RetryConfig } from './config.ts';
import { createDayMetrics } from './days/day-metrics.ts';
import { createKeepDays } from './days/keep-days.ts';
import type { RetryMetrics } from './retry-metrics.ts';
import { createEraseNoted } from './sweep/erase-noted.ts';
import { createStuckMetrics, showUnpublished } from './sweep/sweep-metrics.ts';
import { createStuckSweep } from './sweep/sweep-stuck.ts';
import { createUnpublishedSweep } from './sweep/sweep-unpublished.ts';
import { MAX_READ } from './sweep/when-taken-over.ts';

interface Wires {
  db: Database;
  records: RecordLog;
  topics: TopicNames;
  deliveries: DeliveryStore;
  metrics: RetryMetrics;
}

/** Starts the sweeps, the erasure of payloads, and what keeps the collections of days. One process at a time does each. */
export function startSweeps(context: ServiceContext<RetryConfig>, wires: Wires): void {
  const { lifecycle, logger, registry, config } = context;
  const { db, topics, records, deliveries, metrics } = wires;
  const holder = randomUUID();
  const leases = createLeaseStore(db);
  const shared = { holder, leases, deliveries, records, rest: pause, logger };
  const unpublished = createUnpublishedSweep({
    ...shared,
    createdTopic: topics.messageCreated,
    publishers: createPublisherStore(db),
    messages: createMessageStore(db),
    maxRead: MAX_READ,
    metrics,
    monotonicMs: monotonicClockMs,
  });
  unpublished.start();
  lifecycle.onStop('sweep of unpublished messages', unpublished.stop);
  showUnpublished(registry, unpublished.oldestAtMs, systemClockMs);

  const stuck = createStuckSweep({
    ...shared,
    topics,
    afterMs: config.RECONCILE_AFTER,
    monotonicMs: monotonicClockMs,
    checks: createMessageChecks(db),
    stuck: createStuckDeliveries(db),
    webhooks: createWebhookStates(db),
    companies: createCompanyLife(db),
    metrics: createStuckMetrics(registry, systemClockMs),
  });
  stuck.start();
  lifecycle.onStop('sweep of stuck deliveries', stuck.stop);

  startErasing(context, db, { holder, leases });
  startKeepingDays(context, db, { holder, leases });
}

interface Holding {
  holder: string;
  leases: LeaseStore;
}

type Context = ServiceContext<RetryConfig>;

function startErasing({ lifecycle, logger }: Context, db: Database, holding: Holding): void {
  const erasing = createEraseNoted({
    ...holding,
    erasure: createPayloadErasure(db),
    monotonicMs: monotonicClockMs,
    rest: pause,
    logger,
  });
  erasing.start();
  lifecycle.onStop('erasure of payloads', erasing.stop);
}

function startKeepingDays(
  { lifecycle, logger, registry }: Context,
  db: Database,
  holding: Holding,
): void {
  const keepDays = createKeepDays({
    ...holding,
    days: createDayCollections(db),
    metrics: createDayMetrics(registry, systemClockMs),
    nowMs: systemClockMs,
    logger,
  });
  keepDays.start();
  lifecycle.onStop('collections of days', keepDays.stop);
}

import { randomUUID } from 'node:crypto';
import type { TopicNames } from '@posthorn/domain/records/topics.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createLeaseStore } from '@posthorn/platform/mongo/leases.ts';
import { createMessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { createStuckDeliveries } from '@posthorn/platform/mongo/deliveries/stuck-deliveries.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { mongo } from 'mongoose';
import type { RetryConfig } from './config.ts';
import { createReconciler, PAUSE_MS } from './reconcile/reconcile-deliveries.ts';
import { createReconcileMetrics, showUnpublished } from './reconcile/reconcile-metrics.ts';
import type { RetryMetrics } from './retry-metrics.ts';
import { createSweeper } from './sweep-unpublished.ts';

interface Wires {
  db: mongo.Db;
  log: RecordLog;
  topics: TopicNames;
  deliveries: DeliveryStore;
  metrics: RetryMetrics;
}

/** Starts what looks after the others' leavings; of each, one process works at a time. */
export function startBackground(context: ServiceContext<RetryConfig>, wires: Wires): void {
  const { lifecycle, logger, registry, config } = context;
  const { db, topics } = wires;
  const shared = { ...wires, logger, holder: randomUUID(), leases: createLeaseStore(db) };
  const sweeper = createSweeper({
    ...shared,
    createdTopic: topics.messageCreated,
    publishers: createPublisherStore(db),
    messages: createMessageStore(db),
  });
  sweeper.start();
  lifecycle.onStop('sweeper', sweeper.stop);
  showUnpublished(registry, sweeper.oldestAtMs, systemClockMs);

  const reconciler = createReconciler({
    ...shared,
    afterMs: config.RECONCILE_AFTER,
    pauseMs: PAUSE_MS,
    checks: createMessageChecks(db),
    stuck: createStuckDeliveries(db),
    webhooks: createWebhookStates(db),
    metrics: createReconcileMetrics(registry),
  });
  reconciler.start();
  lifecycle.onStop('reconciler', reconciler.stop);
}

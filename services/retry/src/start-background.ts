import { randomUUID } from 'node:crypto';
import type { TopicNames } from '@posthorn/domain/topics.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import { createLeaseStore } from '@posthorn/platform/mongo/leases.ts';
import { createMessageChecks } from '@posthorn/platform/mongo/message-checks.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/publishers.ts';
import { createStuckDeliveries } from '@posthorn/platform/mongo/stuck-deliveries.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhook-states.ts';
import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs } from '@posthorn/platform/system.ts';
import type { mongo } from 'mongoose';
import type { RetryConfig } from './config.ts';
import { createReconciler, PAUSE_MS } from './reconcile-deliveries.ts';
import { createReconcileMetrics, showUnpublished } from './reconcile-metrics.ts';
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

import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { publishInBatches } from '@posthorn/platform/outbox/publish-in-batches.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { mongo } from 'mongoose';
import { Gauge, type Registry } from 'prom-client';
import { bytesOfMib, type GatewayConfig } from '../config.ts';
import { createHeartbeat } from './keep-heartbeat.ts';
import { createPublication, type Publication } from './publish-created.ts';
import { createUnconfirmedInserts, type UnconfirmedInserts } from './unconfirmed-inserts.ts';

export interface Outbox {
  publisherId: string;
  publication: Publication;
  unconfirmed: UnconfirmedInserts;
}

interface OutboxDeps {
  db: mongo.Db;
  records: RecordLog;
  messages: MessageStore;
  topic: string;
  budgets: MemoryBudgets;
}

/** Registers this process as a publisher, so that the sweeper knows it before it stores its first message. */
export async function openOutbox(
  { config, logger, lifecycle, registry }: ServiceContext<GatewayConfig>,
  { db, records, messages, topic, budgets }: OutboxDeps,
): Promise<Outbox> {
  const publisherId = systemIds('gw');
  const nowMs = systemClockMs;
  const publishQueueBytes = bytesOfMib(config.PUBLISH_QUEUE_MIB);
  const publication = createPublication({
    topic,
    publisherId,
    records,
    messages,
    publishQueueBytes,
    logger,
    nowMs,
  });
  budgets.add('publish_queue', publishQueueBytes, publication.usedBytes);
  const unconfirmed = createUnconfirmedInserts({
    messages,
    publish: (late) => publishInBatches(records, topic, late),
    monotonicMs: () => performance.now(),
  });
  const publishers = createPublisherStore(db);
  const heartbeat = createHeartbeat({ publisherId, publishers, publication, unconfirmed, logger });
  await heartbeat.start();
  lifecycle.onStop('heartbeat', heartbeat.stop);
  lifecycle.onStop('publication', () => publication.close(config.DRAIN_TIMEOUT_MS));
  watchPublication(registry, publication);
  return { publisherId, publication, unconfirmed };
}

function watchPublication(registry: Registry, publication: Publication): void {
  new Gauge({
    name: 'posthorn_unpublished_messages',
    help: 'Accepted messages that Kafka has not acknowledged yet.',
    registers: [registry],
    collect() {
      this.set(publication.state().unpublished);
    },
  });
  new Gauge({
    name: 'posthorn_unpublished_oldest_seconds',
    help: 'How long the oldest accepted message that Kafka has not acknowledged has waited.',
    registers: [registry],
    collect() {
      this.set((publication.state().behindMs ?? 0) / 1_000);
    },
  });
}

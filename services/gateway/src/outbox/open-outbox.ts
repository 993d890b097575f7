import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { createReadingPositions } from '@posthorn/platform/redis/reading-positions.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import {
  monotonicClockMs,
  systemClockMs,
  systemIds,
} from '@posthorn/platform/service/clock-and-ids.ts';
import type { Spans } from '@posthorn/platform/tracing/spans.ts';
import type { mongo } from 'mongoose';
import { Gauge, type Registry } from 'prom-client';
import type { GatewayConfig } from '../config.ts';
import type { CompanyRests } from '../http/turns/company-rests.ts';
import type { GatewayRedis } from '../open-redis.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { createFollowReaders } from './follow-readers.ts';
import { createPublishBudget } from './publish-budget.ts';
import { createPublishPace } from './publish-pace.ts';

/** As often as dispatchers report them. */
const READERS_EVERY_MS = 200;

interface OutboxDeps {
  db: mongo.Db;
  kafka: Pick<OpenRecordLog, 'records' | 'topics' | 'partitionOf'>;
  redis: Pick<GatewayRedis, 'client'>;
  messages: MessageStore;
  budgets: MemoryBudgets;
  /** Null when nothing is traced. */
  spans: Spans | null;
  pauseMs: CompanyRests['pauseMs'];
}

/** Opens the outbox, with its memory budget and metrics. Registers this process before it stores its first message. */
export async function openOutbox(
  context: ServiceContext<GatewayConfig>,
  { db, kafka, redis, messages, budgets, spans, pauseMs }: OutboxDeps,
): Promise<Outbox> {
  const { config, logger, lifecycle, registry } = context;
  const publishQueueBytes = memoryShare('gateway', 'publish_queue', config.MEMORY_MIB);
  const topic = kafka.topics.messageCreated;
  const budget = createPublishBudget({
    partitionOf: (webhookId) => kafka.partitionOf(topic, webhookId),
    nowMs: systemClockMs,
  });
  const outbox = createOutbox({
    topic,
    records: kafka.records,
    messages,
    publishers: createPublisherStore(db),
    publishQueueBytes,
    pace: createPublishPace({
      pauseMs,
      after: (ms, run) => void setTimeout(run, ms),
    }),
    budget,
    spans,
    newId: systemIds,
    logger,
    nowMs: systemClockMs,
    monotonicMs: monotonicClockMs,
  });
  budgets.add('publish_queue', publishQueueBytes, () => outbox.usedBytes() + budget.usedBytes());
  await outbox.start();
  const readers = createLoop({
    name: 'reading positions',
    everyMs: READERS_EVERY_MS,
    run: createFollowReaders({
      budget,
      positions: createReadingPositions(redis.client, config.REDIS_PREFIX, systemClockMs),
      releaseWaiting: outbox.releaseWaiting,
      nowMs: monotonicClockMs,
    }),
    logger,
  });
  readers.start();
  lifecycle.onStop('reading positions', () => void readers.stop());
  lifecycle.onStop('outbox', () => outbox.stop(config.DRAIN_TIMEOUT_MS));
  watchUnpublished(registry, outbox);
  return outbox;
}

/** Shows what Kafka has not acknowledged, at each scrape. */
export function watchUnpublished(registry: Registry, outbox: Pick<Outbox, 'state'>): void {
  new Gauge({
    name: 'posthorn_unpublished_messages',
    help: 'Accepted messages that Kafka has not acknowledged yet.',
    registers: [registry],
    collect() {
      this.set(outbox.state().unpublished);
    },
  });
  new Gauge({
    name: 'posthorn_unpublished_oldest_seconds',
    help: 'Age of the oldest accepted message that Kafka has not acknowledged; while companies wait for their records to be read, for how long Kafka has not answered.',
    registers: [registry],
    collect() {
      const { behindMs, stuckMs, waitingCompanies } = outbox.state();
      this.set(((waitingCompanies > 0 ? stuckMs : behindMs) ?? 0) / 1_000);
    },
  });
  new Gauge({
    name: 'posthorn_publish_waiting_companies',
    help: 'Companies whose messages wait because too many of their records in Kafka are unread.',
    registers: [registry],
    collect() {
      this.set(outbox.state().waitingCompanies);
    },
  });
}

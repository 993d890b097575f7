import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { bytesOfMib } from '@posthorn/platform/memory/mebibytes.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
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
import { createOutbox, type Outbox } from './outbox.ts';
import { createPublishPace } from './publish-pace.ts';

interface OutboxDeps {
  db: mongo.Db;
  records: RecordLog;
  messages: MessageStore;
  topic: string;
  budgets: MemoryBudgets;
  /** Null when nothing is traced. */
  spans: Spans | null;
  pauseMs: CompanyRests['pauseMs'];
}

/** Opens the outbox, with its memory budget and metrics. Registers this process before it stores its first message. */
export async function openOutbox(
  { config, logger, lifecycle, registry }: ServiceContext<GatewayConfig>,
  { db, records, messages, topic, budgets, spans, pauseMs }: OutboxDeps,
): Promise<Outbox> {
  const publishQueueBytes = bytesOfMib(config.PUBLISH_QUEUE_MIB);
  const outbox = createOutbox({
    topic,
    records,
    messages,
    publishers: createPublisherStore(db),
    publishQueueBytes,
    pace: createPublishPace({
      pauseMs,
      after: (ms, run) => void setTimeout(run, ms),
      nowMs: systemClockMs,
    }),
    spans,
    newId: systemIds,
    logger,
    nowMs: systemClockMs,
    monotonicMs: monotonicClockMs,
  });
  budgets.add('publish_queue', publishQueueBytes, outbox.usedBytes);
  await outbox.start();
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
    help: 'Age of the oldest accepted message that Kafka has not acknowledged.',
    registers: [registry],
    collect() {
      this.set((outbox.state().behindMs ?? 0) / 1_000);
    },
  });
}

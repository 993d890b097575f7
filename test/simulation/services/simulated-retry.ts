import type { ConsumeOptions, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { Registry } from 'prom-client';
import {
  createLatestRelease,
  createOverdueWatch,
  createReleaseParked,
} from '../../../services/retry/src/release-parked.ts';
import { createParkFailure } from '../../../services/retry/src/park-failure.ts';
import { createRetryMetrics } from '../../../services/retry/src/retry-metrics.ts';
import {
  createUnpublishedSweep,
  type UnpublishedSweep,
} from '../../../services/retry/src/sweep/sweep-unpublished.ts';
import { keepTrying, LOGGER } from '../world/silent-logger.ts';
import { openDeadLetters, type ServiceDeps } from './simulated-dispatcher.ts';
import type { SimulatedPublishers } from '../infrastructure/simulated-publishers.ts';
import { DELAY_TOPICS, SCHEDULE, TOPICS } from '../world/world.ts';

export interface RetrySteps {
  park: (record: LogRecord) => Promise<void>;
  release: ConsumeOptions['handle'];
  sweeper: UnpublishedSweep;
}

const METRICS = createRetryMetrics(new Registry(), [5_000]);

/** Returns the steps of the real retry service, wired as in start-retry.ts. */
export function createRetrySteps(
  { world, process, db, records }: ServiceDeps,
  publishers: SimulatedPublishers,
): RetrySteps {
  const { parkedByDelayMs, retryDue: retryDueTopic, messageCreated: createdTopic } = TOPICS;
  const wires = {
    records,
    metrics: METRICS,
    keepTrying,
    logger: LOGGER,
    nowMs: process.nowMs,
    deliveries: createDeliveryStore(db),
    deadLetters: openDeadLetters(records),
  };
  const webhooks = createWebhookStates(db);
  const overdue = createOverdueWatch();
  const monotonicMs = world.time.nowMs;
  const latestRelease = createLatestRelease({
    delayMsOf: (topic) => DELAY_TOPICS.get(topic)?.delayMs ?? Infinity,
    nowMs: process.nowMs,
    monotonicMs,
  });
  return {
    park: createParkFailure({ ...wires, parkedByDelayMs, schedule: SCHEDULE }),
    release: createReleaseParked({
      ...wires,
      overdue,
      latestRelease,
      monotonicMs,
      retryDueTopic,
      delayTopics: DELAY_TOPICS,
      webhooks,
      // For the sweep of stuck deliveries, which is not simulated.
      markBacklogs: () => undefined,
    }),
    sweeper: createUnpublishedSweep({
      ...wires,
      createdTopic,
      holder: process.name,
      monotonicMs,
      // So few that most looks take several pages.
      maxRead: 3,
      // No message goes to that many webhooks.
      rest: () => Promise.resolve(),
      messages: createMessageStore(db),
      ...publishers.connectedTo(process),
    }),
  };
}

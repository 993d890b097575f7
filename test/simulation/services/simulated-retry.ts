import type { ConsumeOptions, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createSequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { Registry } from 'prom-client';
import { createReleaseParked } from '../../../services/retry/src/release-parked.ts';
import { createParkFailure } from '../../../services/retry/src/park-failure.ts';
import { createRetryMetrics } from '../../../services/retry/src/metrics.ts';
import { UnpublishedSweep } from '../../../services/retry/src/sweep/sweep-unpublished.ts';
import { keepTrying, LOGGER } from '../world/silent-logger.ts';
import { openDeadLetters, type ServiceDeps } from './simulated-dispatcher.ts';
import type { SimulatedPublishers } from '../infrastructure/simulated-publishers.ts';
import { DELAY_TOPICS, SCHEDULE, TOPICS } from '../world/world.ts';

export interface RetrySteps {
  park: (record: LogRecord) => Promise<void>;
  release: ConsumeOptions['handle'];
  sweeper: UnpublishedSweep;
}

const METRICS = createRetryMetrics(new Registry(), [5_000], () => 0);

/** Returns the steps of the real retry service, wired as in start.ts. */
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
    sequences: createSequenceStore(db),
    deadLetters: openDeadLetters(records),
  };
  const monotonicMs = world.time.nowMs;
  return {
    park: createParkFailure({
      ...wires,
      parkedByDelayMs,
      schedule: SCHEDULE,
      disableWebhook: () => Promise.reject(new Error('no simulated endpoint disables its webhook')),
      report: () => undefined,
    }),
    release: createReleaseParked({
      ...wires,
      earlierMs: process.nowMs,
      monotonicMs,
      retryDueTopic,
      delayTopics: DELAY_TOPICS,
      webhooks: createWebhookStates(db),
      // Marks are for the sweep of stuck deliveries, which is not simulated.
      reconcileAfterMs: Infinity,
    }).handle,
    sweeper: new UnpublishedSweep({
      ...wires,
      createdTopic,
      holder: process.name,
      monotonicMs,
      // So few that most looks take several pages.
      maxRead: 3,
      // No message goes to that many webhooks.
      pause: () => Promise.resolve(),
      messages: createMessageStore(db),
      ...publishers.connectedTo(process),
    }),
  };
}

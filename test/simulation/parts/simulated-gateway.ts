import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createdRecords } from '@posthorn/platform/outbox/created-records.ts';
import {
  createAcceptMessage,
  type AcceptMessage,
} from '../../../services/gateway/src/accept/accept-message.ts';
import { createHeartbeat } from '../../../services/gateway/src/outbox/keep-heartbeat.ts';
import { createPublication } from '../../../services/gateway/src/outbox/publish-created.ts';
import { createDoubts } from '../../../services/gateway/src/outbox/unconfirmed-inserts.ts';
import { sampleWebhook } from '../../support/samples/sample-webhook.ts';
import { LOGGER } from './silent.ts';
import type { ServiceDeps } from './simulated-dispatcher.ts';
import type { Collection } from './simulated-mongo.ts';
import type { SimulatedPublishers } from './simulated-publishers.ts';
import { createIds, TOPICS } from '../run/world.ts';

export interface SimulatedGateway {
  /** Resolves when the publisher is known; only then may it accept. */
  start: () => Promise<void>;
  accept: AcceptMessage['accept'];
  stop: () => Promise<void>;
}

const DRAIN_MS = 10_000;

/** Step 1 of the real gateway with its outbox as open-outbox.ts wires it, below the HTTP server. */
export function createSimulatedGateway(
  { world, process, db, log }: ServiceDeps,
  publishersStore: SimulatedPublishers,
  webhooks: Collection,
): SimulatedGateway {
  const newId = createIds(world.random, process.nowMs);
  const publisherId = newId('gw');
  const topic = TOPICS.messageCreated;
  const messages = createMessageStore(db);
  const common = { publisherId, logger: LOGGER, nowMs: process.nowMs };
  const publication = createPublication({
    ...common,
    topic,
    log,
    messages,
    publishQueueBytes: 50_331_648,
  });
  const doubts = createDoubts({
    publishLate: (late) => log.publish(late.flatMap((message) => createdRecords(topic, message))),
    messages,
    nowMs: world.time.nowMs,
  });
  const { publishers } = publishersStore.reachedBy(process);
  const heartbeat = createHeartbeat({ ...common, publishers, publication, doubts });
  const { accept } = createAcceptMessage({
    ...common,
    messages,
    publication,
    doubts,
    newId,
    deliveries: createDeliveryStore(db),
    targets: { resolve: () => Promise.resolve(targetsAmong(webhooks)) },
    answers: { seal: () => '' },
    acceptQueueBytes: 67_108_864,
    monotonicMs: world.time.nowMs,
  });
  // Ends the timer of a heart that stands still; what it still sends reaches nobody.
  process.onCrash(() => void heartbeat.stop().catch(() => undefined));
  return {
    start: heartbeat.start,
    accept,
    async stop() {
      await publication.close(DRAIN_MS);
      await heartbeat.stop();
    },
  };
}

function targetsAmong(webhooks: Collection): ReturnType<typeof sampleWebhook>[] {
  return [...webhooks.values()].map(({ _id: id, disabled }) =>
    sampleWebhook(0, { id, disabled: disabled === true }),
  );
}

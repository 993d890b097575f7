import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createdRecords } from '@posthorn/platform/outbox/created-records.ts';
import {
  createAcceptMessage,
  type AcceptMessage,
} from '../../../services/gateway/src/accept/accept-message.ts';
import { createHeartbeat } from '../../../services/gateway/src/outbox/keep-heartbeat.ts';
import { createPublication } from '../../../services/gateway/src/outbox/publish-created.ts';
import { createUnconfirmedInserts } from '../../../services/gateway/src/outbox/unconfirmed-inserts.ts';
import { sampleWebhook } from '../../support/samples/sample-webhook.ts';
import { LOGGER } from '../world/silent-logger.ts';
import type { ServiceDeps } from './simulated-dispatcher.ts';
import type { Collection } from '../infrastructure/simulated-mongo.ts';
import type { SimulatedPublishers } from '../infrastructure/simulated-publishers.ts';
import { createIds, TOPICS } from '../world/world.ts';

export interface SimulatedGateway {
  /** Resolves when the publisher is stored. Only then may the gateway accept messages. */
  start: () => Promise<void>;
  accept: AcceptMessage['accept'];
  stop: () => Promise<void>;
}

const DRAIN_MS = 10_000;

/** Returns the accepting part of the real gateway with its outbox as open-outbox.ts wires it, without HTTP server. */
export function createSimulatedGateway(
  { world, process, db, records }: ServiceDeps,
  simulatedPublishers: SimulatedPublishers,
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
    records,
    messages,
    publishQueueBytes: 50_331_648,
  });
  const unconfirmed = createUnconfirmedInserts({
    publish: (late) => records.publish(late.flatMap((message) => createdRecords(topic, message))),
    messages,
    monotonicMs: world.time.nowMs,
  });
  const { publishers } = simulatedPublishers.connectedTo(process);
  const heartbeat = createHeartbeat({ ...common, publishers, publication, unconfirmed });
  const { accept } = createAcceptMessage({
    ...common,
    messages,
    publication,
    unconfirmed,
    newId,
    deliveries: createDeliveryStore(db),
    targets: { resolve: () => Promise.resolve(targetsAmong(webhooks)) },
    responses: { seal: () => '' },
    acceptQueueBytes: 67_108_864,
    monotonicMs: world.time.nowMs,
  });
  // Stops the timer of the heartbeat; what a crashed process sends has no effect.
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

import type { Ordering } from '@posthorn/domain/delivery/sequence.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import {
  createAcceptMessages,
  type AcceptMessages,
} from '../../../services/gateway/src/accept/accept-message.ts';
import {
  createKeyedAccept,
  type KeyedAccept,
} from '../../../services/gateway/src/accept/idempotency.ts';
import { createOutbox } from '../../../services/gateway/src/outbox/outbox.ts';
import { openedWebhook } from '../../support/samples/sample-webhook.ts';
import { type TargetList, targetListOf } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { Registry } from 'prom-client';
import { LOGGER } from '../world/silent-logger.ts';
import type { ServiceDeps } from './simulated-dispatcher.ts';
import type { SimulatedKeys } from '../infrastructure/simulated-keys.ts';
import type { Collection } from '../infrastructure/simulated-mongo.ts';
import type { SimulatedPublishers } from '../infrastructure/simulated-publishers.ts';
import { createIds, TOPICS } from '../world/world.ts';

export interface SimulatedGateway {
  /** Resolves when the publisher is stored. Only then may the gateway accept messages. */
  start: () => Promise<void>;
  accept: AcceptMessages['accept'];
  /** The same with idempotency keys. */
  acceptMany: KeyedAccept['acceptMany'];
  stop: () => Promise<void>;
}

/** The stores of a gateway that are simulated beside the database of its process. */
interface GatewayStores {
  publishers: SimulatedPublishers;
  keys: SimulatedKeys;
  webhooks: Collection;
}

const DRAIN_MS = 10_000;

/** Returns the accepting part of the real gateway with its outbox as start.ts wires it, without HTTP server. */
export function createSimulatedGateway(
  { world, process, db, records }: ServiceDeps,
  { publishers, keys, webhooks }: GatewayStores,
): SimulatedGateway {
  const newId = createIds(world.random, process.nowMs);
  const messages = keys.connectedTo(process, createMessageStore(db));
  const outbox = createOutbox({
    topic: TOPICS.messageCreated,
    records,
    messages,
    publishers: publishers.connectedTo(process).publishers,
    publishQueueBytes: 50_331_648,
    newId,
    logger: LOGGER,
    nowMs: process.nowMs,
    monotonicMs: world.time.nowMs,
  });
  const { accept } = createAcceptMessages({
    nowMs: process.nowMs,
    retentionMs: () => 30 * 86_400_000,
    maxLingerMs: 4,
    outbox,
    publisherId: outbox.publisherId,
    newId,
    targets: { candidatesOf: () => Promise.resolve(targetsAmong(webhooks)) },
    checks: { check: () => Promise.reject(new Error('no project checks payloads')) },
    counts: { add: () => undefined, hasRoom: () => true },
    responses: { seal: () => '' },
    acceptQueueBytes: 67_108_864,
    monotonicMs: world.time.nowMs,
    logger: LOGGER,
  });
  const unused = (): Promise<never> => Promise.reject(new Error('no first response is shown'));
  const { acceptMany } = createKeyedAccept({
    accept,
    messages: { ...messages, findAccepted: unused },
    webhooks: { findTarget: unused },
    responses: { open: () => ({ signature: null, headers: [] }) },
    outbox,
    registry: new Registry(),
  });
  // Stops the timer of the heartbeat; what a crashed process sends has no effect.
  process.onCrash(() => void outbox.stop(0).catch(() => undefined));
  return { start: outbox.start, accept, acceptMany, stop: () => outbox.stop(DRAIN_MS) };
}

function targetsAmong(webhooks: Collection): TargetList {
  const found = [...webhooks.values()].map(({ _id: id, disabled, ordering }) =>
    openedWebhook(0, { id, disabled: disabled === true, ordering: ordering as Ordering }),
  );
  return targetListOf(found, found[0] ?? null);
}

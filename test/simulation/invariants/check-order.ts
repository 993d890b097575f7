import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import { attemptedTargets } from '../infrastructure/simulated-holds.ts';
import type { SimulatedMongo } from '../infrastructure/simulated-mongo.ts';
import { TOPICS, type World } from '../world/world.ts';
import type { Observations } from './observations.ts';

/** Checks the order of deliveries with an ordering key (docs/contract.md C29), from outside the services. */
export interface OrderChecker {
  /** To be called with each record that is appended. */
  onAppend: (record: OutgoingRecord) => void;
  /**
   * To be called when the client knows that a message is accepted: whatever it sends of the key from then on is behind that.
   * It sends the messages of a key one after the other.
   */
  onAccepted: (orderingKey: string, messageId: string) => void;
  /** To be called when a request begins. */
  onRequest: (due: DueAttempt) => void;
  /** Whether the delivery may wait for ever: an earlier one of its key is exhausted, and blocks it. */
  isBlocked: (deliveryId: string) => boolean;
}

/** The order of a key is that of the first records of its deliveries, and that in which its messages were accepted. */
export function createOrderChecker(
  world: World,
  mongo: SimulatedMongo,
  observations: Observations,
): OrderChecker {
  /** Webhook and key → delivery ids, and delivery id → those. */
  const sequences = new Map<string, string[]>();
  const sequenceOf = new Map<string, string[]>();
  const before = (id: string): string[] => {
    const ids = sequenceOf.get(id) ?? [];
    return ids.slice(0, Math.max(0, ids.indexOf(id)));
  };
  /** Ordering key → the ids of its messages. */
  const accepted = new Map<string, string[]>();
  const acceptedBefore = (due: DueAttempt): string[] => {
    const { messageId, webhookId, orderingKey = '' } = due;
    const ids = accepted.get(orderingKey) ?? [];
    // It may be requested before the client knows that it is accepted.
    const end = ids.includes(messageId) ? ids.indexOf(messageId) : ids.length;
    const toWebhook = ids.slice(0, end).filter((id) => {
      return attemptedTargets(mongo, id).includes(webhookId);
    });
    return toWebhook.map((id) => deliveryIdOf(id, webhookId));
  };
  const statusOf = (id: string): DeliveryDocument['status'] | undefined =>
    // Simulated collections are untyped. Only the stores of deliveries write to this one.
    (mongo.collection('deliveries').get(id) as DeliveryDocument | undefined)?.status;
  const hasSucceeded = (id: string): boolean =>
    [...observations.requests.values()]
      .flat()
      .some(
        ({ deliveryId, outcome, virtualStartMs, durationMs }) =>
          deliveryId === id &&
          outcome === 'success' &&
          virtualStartMs + durationMs <= world.time.nowMs(),
      );
  const hasEnded = (id: string): boolean => {
    const status = statusOf(id);
    const isSkipped = status === 'exhausted' && world.plan.ordering !== 'block';
    return status === 'cancelled' || isSkipped || hasSucceeded(id);
  };
  return {
    onAppend({ topic, value }) {
      if (topic !== TOPICS.messageCreated) return;
      const { webhookId, orderingKey, deliveryId } = decodeMessageCreated(value);
      if (orderingKey === undefined || sequenceOf.has(deliveryId)) return;
      const name = `${webhookId}/${orderingKey}`;
      const ids = sequences.get(name) ?? [];
      sequences.set(name, ids);
      ids.push(deliveryId);
      sequenceOf.set(deliveryId, ids);
    },
    onAccepted(orderingKey, messageId) {
      accepted.set(orderingKey, [...(accepted.get(orderingKey) ?? []), messageId]);
    },
    onRequest(due) {
      const { deliveryId, orderingKey, trigger } = due;
      if (orderingKey === undefined || trigger === 'resend' || world.plan.ordering === 'none')
        return;
      // A repeat of what the endpoint has.
      if (hasSucceeded(deliveryId)) return;
      const inFront = [...before(deliveryId), ...acceptedBefore(due)];
      const open = inFront.find((id) => !hasEnded(id));
      if (open === undefined) return;
      world.reportViolation(
        `an attempt of ${deliveryId} began before ${open}, which is earlier, has ended`,
      );
    },
    isBlocked: (id) =>
      world.plan.ordering === 'block' && before(id).some((each) => statusOf(each) === 'exhausted'),
  };
}

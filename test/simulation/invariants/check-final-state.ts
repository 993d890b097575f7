import { isFinal } from '@posthorn/domain/delivery/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import type { OrderChecker } from './check-order.ts';
import type { Observations } from './observations.ts';
import { attemptedTargets } from '../infrastructure/simulated-holds.ts';
import { keyOf, type SimulatedKafka } from '../infrastructure/simulated-kafka.ts';
import type { Collection, SimulatedMongo } from '../infrastructure/simulated-mongo.ts';

/** Returns the invariants that are violated at the end of a run. */
export function checkFinalState(
  { mongo, kafka, order }: { mongo: SimulatedMongo; kafka: SimulatedKafka; order: OrderChecker },
  observations: Observations,
): string[] {
  const deliveries = mongo.collection('deliveries');
  return [
    ...observations.accepted
      .filter((id) => !mongo.collection('messages').has(id))
      .map((id) => `message ${id} was accepted and is not stored`),
    ...expectedDeliveryIds(mongo, observations).flatMap((id) =>
      order.isBlocked(id) ? [] : violationsOfDelivery(deliveries, id, observations),
    ),
    ...statedDeliveryIds(mongo, observations)
      .filter((id) => deliveries.has(id))
      .map((id) => `delivery ${id} has a document, and its message states that it is cancelled`),
    ...unexplainedDuplicates(observations),
    ...uncommittedPartitions(kafka),
  ];
}

/**
 * Returns the deliveries of accepted messages that are to be attempted, and those with a document. A message whose request
 * failed may be stored nevertheless; the sweep of stuck deliveries, which is not simulated, handles those without a document.
 */
function expectedDeliveryIds(mongo: SimulatedMongo, { accepted }: Observations): string[] {
  const promised = accepted.flatMap((id) =>
    attemptedTargets(mongo, id).map((target) => deliveryIdOf(id, target)),
  );
  return [...new Set([...promised, ...mongo.collection('deliveries').keys()])];
}

/** Those to webhooks that were disabled at acceptance: the client of the simulation resends none of them. */
function statedDeliveryIds(
  mongo: SimulatedMongo,
  { accepted }: Pick<Observations, 'accepted'>,
): string[] {
  return accepted.flatMap((id) => {
    const webhookIds = (mongo.collection('messages').get(id)?.disabledTargets ?? []) as string[];
    return webhookIds.map((webhookId) => deliveryIdOf(id, webhookId));
  });
}

function violationsOfDelivery(
  deliveries: Collection,
  id: string,
  observations: Observations,
): string[] {
  const delivery = deliveries.get(id) as DeliveryDocument | undefined;
  if (!delivery) return [`delivery ${id} was lost: it has no document at the end`];
  const { status, attemptCount, resend } = delivery;
  return [
    ...(isFinal(status) ? [] : [`delivery ${id} was lost: pending after ${attemptCount} attempts`]),
    ...(status === 'exhausted' && !observations.deadLetters.has(id)
      ? [`delivery ${id} is exhausted and has no dead letter`]
      : []),
    ...(resend?.state === 'asked' ? [`the resend of delivery ${id} was lost`] : []),
  ];
}

/**
 * Each further request of an attempt needs a cause: its record was published again, or the attempt was interrupted by a
 * rebalance or a crash.
 */
function unexplainedDuplicates({ requests, copies, interruptions }: Observations): string[] {
  return [...requests].flatMap(([attemptId, { length }]) => {
    const allowed = (copies.get(attemptId) ?? 0) + (interruptions.get(attemptId) ?? 0);
    if (length <= allowed) return [];
    return [`attempt ${attemptId} was made ${length} times, ${allowed} times with a cause`];
  });
}

function uncommittedPartitions(kafka: SimulatedKafka): string[] {
  return kafka.groups().flatMap((group) =>
    [...group.topics]
      .flatMap((topic) => kafka.topicPartitions(topic))
      .flatMap((topicPartition) => {
        const last = kafka.partitionAt(topicPartition).records.at(-1)?.offset ?? -1;
        const committed = group.committed.get(keyOf(topicPartition)) ?? 0;
        if (committed > last) return [];
        return [
          `${group.id} has committed ${keyOf(topicPartition)} only up to ${committed}, the last record is ${last}`,
        ];
      }),
  );
}

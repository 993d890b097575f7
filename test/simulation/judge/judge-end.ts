import { isFinal } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import type { Evidence } from './evidence.ts';
import { keyOf, type SimulatedKafka } from '../parts/simulated-kafka.ts';
import type { Collection, SimulatedMongo } from '../parts/simulated-mongo.ts';

/** What does not hold when nothing is left to happen; none in a good run. */
export function judgeEnd(
  { mongo, kafka }: { mongo: SimulatedMongo; kafka: SimulatedKafka },
  evidence: Evidence,
): string[] {
  const deliveries = mongo.of('deliveries');
  return [
    ...evidence.accepted
      .filter((id) => !mongo.of('messages').has(id))
      .map((id) => `message ${id} was accepted and is not stored`),
    ...idsOfDeliveries(mongo, evidence).flatMap((id) => faultsOfDelivery(deliveries, id, evidence)),
    ...duplicatesIn(evidence),
    ...uncommittedIn(kafka),
  ];
}

/** Of what was refused and stored nevertheless only what somebody began; the rest is the reconciler's. */
function idsOfDeliveries(mongo: SimulatedMongo, { accepted }: Evidence): string[] {
  const promised = accepted.flatMap((id) => {
    const targets = (mongo.of('messages').get(id)?.targets ?? []) as string[];
    return targets.map((target) => deliveryIdOf(id, target));
  });
  return [...new Set([...promised, ...mongo.of('deliveries').keys()])];
}

function faultsOfDelivery(deliveries: Collection, id: string, evidence: Evidence): string[] {
  const delivery = deliveries.get(id) as DeliveryDocument | undefined;
  if (!delivery) return [`delivery ${id} was lost: it has no state at the end`];
  const { status, attemptCount, resend } = delivery;
  return [
    ...(isFinal(status) ? [] : [`delivery ${id} was lost: pending after ${attemptCount} attempts`]),
    ...(status === 'exhausted' && !evidence.deadLetters.has(id)
      ? [`delivery ${id} is exhausted and has no dead letter`]
      : []),
    ...(resend?.state === 'asked' ? [`the resend of delivery ${id} was lost`] : []),
  ];
}

/**
 * A second request for an attempt needs an excuse of its own: its record was written twice, or work
 * on it was under way when a group changed or a process ended.
 */
function duplicatesIn({ made, copies, interruptions }: Evidence): string[] {
  return [...made].flatMap(([attemptId, requests]) => {
    const excused = (copies.get(attemptId) ?? 0) + (interruptions.get(attemptId) ?? 0);
    if (requests.length <= excused) return [];
    return [`attempt ${attemptId} was made ${requests.length} times, ${excused} are excused`];
  });
}

function uncommittedIn(kafka: SimulatedKafka): string[] {
  return kafka.groups().flatMap((group) =>
    [...group.topics]
      .flatMap((topic) => kafka.placesOf(topic))
      .flatMap((place) => {
        const last = kafka.partitionAt(place).records.at(-1)?.offset ?? -1;
        const committed = group.committed.get(keyOf(place)) ?? 0;
        if (committed > last) return [];
        return [`${group.id} left ${keyOf(place)} at ${committed}, though ${last} is there`];
      }),
  );
}

import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import type { ConsumerObserver } from '../consumer/consumer-state.ts';
import { attemptedTargets } from '../infrastructure/simulated-holds.ts';
import {
  keyOf,
  type SimulatedKafka,
  type TopicPartition,
} from '../infrastructure/simulated-kafka.ts';
import type { SimulatedMongo } from '../infrastructure/simulated-mongo.ts';
import { TOPICS, type World } from '../world/world.ts';
import type { Observations } from './observations.ts';

/** Checks the order of deliveries with an ordering key (docs/contract.md C29), from outside the services. */
export interface OrderChecker extends Pick<ConsumerObserver, 'onCommit'> {
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

interface Stores {
  mongo: SimulatedMongo;
  kafka: SimulatedKafka;
}

/** The deliveries of one key to one webhook. */
interface Sequence {
  /** In the order of their first records. That of a replay gets its place when it waits and its record is committed. */
  ids: string[];
  /** Those of replays, and what is in front of each: what waited when its record was appended. */
  replayed: Map<string, string[]>;
}

/**
 * The order of a key is that of the first records of its deliveries, and that in which its messages were accepted. Those of a
 * replay are behind what waits then, and in front of what comes later.
 */
export function createOrderChecker(
  world: World,
  stores: Stores,
  observations: Observations,
): OrderChecker {
  const { mongo, kafka } = stores;
  /** By webhook and key, and by delivery id. */
  const sequences = new Map<string, Sequence>();
  const sequenceOf = new Map<string, Sequence>();
  /** The deliveries whose first record is committed: no owner reads it again. */
  const committed = new Set<string>();
  const join = ({ webhookId, orderingKey = '', deliveryId }: DueAttempt): Sequence => {
    const name = `${webhookId}/${orderingKey}`;
    const found = sequences.get(name) ?? { ids: [], replayed: new Map<string, string[]>() };
    sequences.set(name, found);
    sequenceOf.set(deliveryId, found);
    return found;
  };
  const before = (id: string): string[] => {
    const { ids, replayed } = sequenceOf.get(id) ?? NO_SEQUENCE;
    return replayed.get(id) ?? ids.slice(0, Math.max(0, ids.indexOf(id)));
  };
  /** Ordering key → the ids of its messages. */
  const accepted = new Map<string, string[]>();
  const acceptedBefore = (due: DueAttempt): string[] => {
    const { messageId, webhookId, orderingKey = '', deliveryId } = due;
    if (sequenceOf.get(deliveryId)?.replayed.has(deliveryId)) return [];
    const ids = accepted.get(orderingKey) ?? [];
    // It may be requested before the client knows that it is accepted.
    const end = ids.includes(messageId) ? ids.indexOf(messageId) : ids.length;
    const toWebhook = ids.slice(0, end).filter((id) => {
      return attemptedTargets(mongo, id).includes(webhookId);
    });
    return toWebhook.map((id) => deliveryIdOf(id, webhookId));
  };
  const stateOf = (id: string): DeliveryDocument | undefined =>
    // Simulated collections are untyped. Only the stores of deliveries write to this one.
    mongo.collection('deliveries').get(id) as DeliveryDocument | undefined;
  const isExhausted = (id: string): boolean => stateOf(id)?.status === 'exhausted';
  const hasPlace = (id: string): boolean => {
    const { status, position } = stateOf(id) ?? {};
    return committed.has(id) && status === 'pending' && position !== undefined;
  };
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
    const isSkipped = isExhausted(id) && world.plan.ordering !== 'block';
    return stateOf(id)?.status === 'cancelled' || isSkipped || hasSucceeded(id);
  };
  return {
    onAppend(record) {
      if (world.plan.ordering === 'none') return;
      const due = firstAttemptIn(record);
      if (!due || sequenceOf.has(due.deliveryId)) return;
      const { ids, replayed } = join(due);
      if (due.trigger === 'first') ids.push(due.deliveryId);
      else replayed.set(due.deliveryId, [...ids.filter(hasPlace), ...replayed.keys()]);
    },
    onAccepted(orderingKey, messageId) {
      accepted.set(orderingKey, [...(accepted.get(orderingKey) ?? []), messageId]);
    },
    onCommit(group, commit) {
      if (world.plan.ordering === 'none') return;
      const fromOffset = group.committed.get(keyOf(commit)) ?? 0;
      const done = recordsOf(kafka, commit, { fromOffset, toOffset: commit.offset });
      for (const record of done) {
        const { deliveryId = '' } = firstAttemptIn(record) ?? {};
        const { ids, replayed } = sequenceOf.get(deliveryId) ?? NO_SEQUENCE;
        committed.add(deliveryId);
        const isPlaced = replayed.has(deliveryId) && hasPlace(deliveryId);
        if (isPlaced && !ids.includes(deliveryId)) ids.push(deliveryId);
      }
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
    isBlocked(id) {
      const { ids, replayed } = sequenceOf.get(id) ?? NO_SEQUENCE;
      // One that comes while a replay is added may be behind any of its deliveries.
      const inFront = replayed.size > 0 ? [...ids, ...replayed.keys()] : before(id);
      return world.plan.ordering === 'block' && inFront.some((each) => isExhausted(each));
    },
  };
}

const NO_SEQUENCE: Sequence = { ids: [], replayed: new Map() };

type SentRecord = Pick<OutgoingRecord, 'topic' | 'value'>;

/** Returns the first attempt of a delivery with an ordering key, of a message or of a replay; null for any other record. */
function firstAttemptIn({ topic, value }: SentRecord): DueAttempt | null {
  const isCreated = topic === TOPICS.messageCreated;
  if (!isCreated && topic !== TOPICS.retryDue) return null;
  const due = isCreated ? decodeMessageCreated(value) : decodeRetryDue(value);
  const isPlaced = due.attemptNumber > 1 || due.position !== undefined;
  if (due.orderingKey === undefined || isPlaced) return null;
  return isCreated || due.trigger === 'retry' ? due : null;
}

function recordsOf(
  kafka: SimulatedKafka,
  at: TopicPartition,
  { fromOffset, toOffset = Infinity }: { fromOffset: number; toOffset?: number },
): SentRecord[] {
  const { records } = kafka.partitionAt(at);
  const found = records.filter(({ offset }) => offset >= fromOffset && offset < toOffset);
  return found.map(({ value }) => ({ topic: at.topic, value }));
}

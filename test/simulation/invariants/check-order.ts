import { sequenceIdOf } from '@posthorn/domain/delivery/sequence.ts';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import {
  decodeEndedAttempt,
  decodeMessageCreated,
  recordKindOf,
} from '@posthorn/domain/records/records.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Commit } from '@posthorn/platform/kafka/offsets/owned-partitions.ts';
import type { DeliveryDocument, SequenceDocument } from '@posthorn/platform/mongo/documents.ts';
import type { ConsumerObserver } from '../consumer/consumer-state.ts';
import { attemptedTargets } from '../infrastructure/simulated-holds.ts';
import {
  keyOf,
  type SimulatedKafka,
  type TopicPartition,
} from '../infrastructure/simulated-kafka.ts';
import type { SimulatedMongo } from '../infrastructure/simulated-mongo.ts';
import { EPOCH_MS, TOPICS, type World } from '../world/world.ts';
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
      for (const key of keysOf(done)) checkGoesOn(world, stores, commit, key);
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

/** An ordering key of a webhook. */
interface Key {
  webhookId: string;
  orderingKey: string;
}

/** Returns the keys whose deliveries have these records, each once. */
function keysOf(records: readonly SentRecord[]): Key[] {
  const keys = new Map(
    records.flatMap((record): [string, Key][] => {
      const { webhookId = '', orderingKey } = refIn(record) ?? {};
      const id = sequenceIdOf(webhookId, orderingKey ?? '');
      return orderingKey === undefined ? [] : [[id, { webhookId, orderingKey }]];
    }),
  );
  return [...keys.values()];
}

/** Null for a record of a topic that no service reads. */
function refIn({ topic, value }: SentRecord): DeliveryRef | null {
  const kind = recordKindOf('', topic);
  switch (kind) {
    case 'message_created':
      return decodeMessageCreated(value);
    case 'delivery_failed':
      return decodeEndedAttempt(value);
    case 'retry_due':
      return decodeRetryDue(value);
    case null:
      return null;
  }
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

/** The retry service looks at a sequence so soon when somebody has made it due. By itself it does an hour later. */
const SOON_MS = 60_000;

/**
 * The record of a delivery is done only when somebody goes on with its key: while the first pending delivery waits for its
 * turn, another record of the key is not done, its sequence is blocked, or the retry service looks at it soon.
 */
function checkGoesOn(world: World, stores: Stores, commit: Commit, of: Key): void {
  const { mongo } = stores;
  // A sequence may be made due by the clock of another process.
  if (world.plan.hasClockJumps) return;
  const first = firstPending(mongo, of);
  if (first?.waiting !== 'order') return;
  const { webhookId, orderingKey } = of;
  // Simulated collections are untyped. Only the stores of sequences write to this one.
  const sequence = mongo.collection('sequences').get(sequenceIdOf(webhookId, orderingKey)) as
    SequenceDocument | undefined;
  const dueInMs = (sequence?.dueAt.getTime() ?? Infinity) - EPOCH_MS - world.time.nowMs();
  const head = mongo.collection('deliveries').get(sequence?.head.deliveryId ?? '');
  const isBlocked = head?.status === 'exhausted' && world.plan.ordering === 'block';
  if (dueInMs <= SOON_MS || isBlocked || isUnderWay(stores.kafka, commit, of)) return;
  world.reportViolation(`nobody goes on with ${first._id}, whose turn has come`);
}

function firstPending(mongo: SimulatedMongo, of: Key): DeliveryDocument | undefined {
  const deliveries = [...mongo.collection('deliveries').values()] as unknown as DeliveryDocument[];
  const own = deliveries.filter(
    ({ webhookId, orderingKey, status, position }) =>
      webhookId === of.webhookId &&
      orderingKey === of.orderingKey &&
      status === 'pending' &&
      position !== undefined,
  );
  return own.toSorted((a, b) => (a.position ?? 0) - (b.position ?? 0))[0];
}

/** Whether a record of the key is not done, with this commit stored. */
function isUnderWay(kafka: SimulatedKafka, commit: Commit, key: Key): boolean {
  const open = kafka.groups().flatMap((group) =>
    [...group.topics].flatMap(kafka.topicPartitions).flatMap((at) => {
      const isIt = keyOf(at) === keyOf(commit);
      const fromOffset = isIt ? commit.offset : (group.committed.get(keyOf(at)) ?? 0);
      return recordsOf(kafka, at, { fromOffset });
    }),
  );
  return keysOf(open).some(
    ({ webhookId, orderingKey }) => webhookId === key.webhookId && orderingKey === key.orderingKey,
  );
}

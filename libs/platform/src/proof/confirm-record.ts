import { isFinal, type DeliveryState } from '@posthorn/domain/delivery.ts';
import type { Message } from '@posthorn/domain/message.ts';
import {
  recordKindOf,
  subjectOf,
  type RecordSubject,
} from '@posthorn/domain/records/record-subject.ts';
import { readRecord, UnreadableRecordError } from '@posthorn/domain/records/records.ts';
import { createBatcher } from '../async/batching/batcher.ts';
import type { KeepTrying } from '../async/keep-trying.ts';
import type { LogRecord } from '../kafka/record-log.ts';
import type { DeliveryStore } from '../mongo/deliveries/deliveries.ts';
import type { MessageStore } from '../mongo/messages/messages.ts';
import { createdRecordTo } from '../outbox/created-records.ts';

/**
 * Looks up whether the store has what an unproven record says, and resolves with a record that says
 * nothing else; null when the store has not.
 */
export type ConfirmRecord = (record: LogRecord) => Promise<LogRecord | null>;

export interface ConfirmRecordDeps {
  /** TOPIC_PREFIX. */
  prefix: string;
  messages: Pick<MessageStore, 'findCommitted'>;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  keepTrying: KeepTrying;
}

/** A message has 256 KiB at most, so that two batches take 25 MB. */
const READS = { maxItems: 50, lingerMs: 2, maxInFlight: 2 };

interface Stored {
  message: Message | undefined;
  delivery: DeliveryState | undefined;
}

/**
 * Confirms a record when its message is stored, was accepted for this webhook, its delivery has not
 * ended, and every attempt before the one that it asks for is recorded. The first record of a message is made again from the message, so
 * that no payload of a stranger is signed. It counts as inherited: what is recorded of its delivery
 * decides whether the attempt is still to be made.
 */
export function createConfirmRecord(deps: ConfirmRecordDeps): ConfirmRecord {
  const batcher = createBatcher<RecordSubject, Stored>({
    ...READS,
    run: (subjects) => readAll(deps, subjects),
  });
  return async (record) => {
    const kind = recordKindOf(deps.prefix, record.topic);
    if (!kind) return null;
    const subject = readRecord(() => subjectOf(kind, record.value));
    // Its reader publishes it as a dead letter, with the reason why.
    if (subject instanceof UnreadableRecordError) return record;
    const { message, delivery } = await batcher.add(subject);
    if (!message || !isConfirmed(subject, message, delivery)) return null;
    const isFirst = kind === 'message created';
    const {
      key,
      value,
      headers = {},
    } = isFirst ? createdRecordTo(record.topic, message, subject.webhookId) : record;
    return { ...record, key, value, headers, isInherited: true };
  };
}

function isConfirmed(
  { companyId, appId, createdAtMs, webhookId, nextAttemptNumber, isResend }: RecordSubject,
  message: Message,
  delivery: DeliveryState | undefined,
): boolean {
  const isSame =
    message.companyId === companyId &&
    message.appId === appId &&
    message.createdAtMs === createdAtMs &&
    message.targets.includes(webhookId);
  const mayGoOn = isResend || !delivery || !isFinal(delivery.status);
  return isSame && mayGoOn && nextAttemptNumber <= (delivery?.attemptCount ?? 0) + 1;
}

async function readAll(
  { messages, deliveries, keepTrying }: ConfirmRecordDeps,
  subjects: readonly RecordSubject[],
): Promise<Stored[]> {
  const messageIds = [...new Set(subjects.map(({ messageId }) => messageId))];
  const deliveryIds = subjects.map(({ deliveryId }) => deliveryId);
  const [found, states] = await Promise.all([
    keepTrying('look up the messages of unproven records', () =>
      messages.findCommitted(messageIds),
    ),
    keepTrying('look up the deliveries of unproven records', () =>
      deliveries.statesOf(deliveryIds),
    ),
  ]);
  const byId = new Map(found.map((message) => [message.id, message]));
  return subjects.map(({ messageId, deliveryId }) => ({
    message: byId.get(messageId),
    delivery: states.get(deliveryId),
  }));
}

import type { DeliveryState } from '@posthorn/domain/message/delivery.ts';
import type { Message } from '@posthorn/domain/message/message.ts';
import {
  CLOCK_AHEAD_HEADER,
  DEFERRED_SINCE_HEADER,
  DUE_AT_HEADER,
  TURN_AT_HEADER,
  type RecordHeaders,
} from '@posthorn/domain/records/record-headers.ts';
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

/** What may be processed in place of an unproven record. */
export type Confirmed = Pick<LogRecord, 'key' | 'value' | 'headers' | 'isInherited'>;

/** Looks up whether the store has what an unproven record says. Resolves with null when it has not. */
export type ConfirmRecord = (record: LogRecord) => Promise<Confirmed | null>;

export interface ConfirmRecordDeps {
  /** TOPIC_PREFIX. */
  prefix: string;
  messages: Pick<MessageStore, 'findCommitted'>;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  keepTrying: KeepTrying;
  nowMs: () => number;
}

/** A message has 1.5 MB at most, with its targets and its first response: two batches take 60 MB at worst. */
const READS = { maxItems: 20, lingerMs: 2, maxInFlight: 2 };
/** How far the clock of another process may be ahead. */
const CLOCKS_DIFFER_MS = 60_000;

interface Stored {
  message: Message | undefined;
  delivery: DeliveryState | undefined;
}

/**
 * Confirms a record when its message is stored, was accepted for this webhook, and every attempt before
 * the one that it asks for is recorded. It counts as inherited then: what is recorded of its delivery
 * decides whether the attempt is still to be made. The first record of a message is made again from the
 * stored message, so that no payload of a stranger is signed. Of any other one only its value and its
 * times are kept.
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
    if (!message || !isConfirmed(subject, message, delivery, deps.nowMs())) return null;
    const made = createdRecordTo(record.topic, message, subject.webhookId);
    const headers = made.headers ?? {};
    if (kind === 'message_created') return { ...made, headers, isInherited: true };
    const times = timesOf(record.headers);
    return { ...made, value: record.value, headers: { ...headers, ...times }, isInherited: true };
  };
}

const TIMES = [DUE_AT_HEADER, TURN_AT_HEADER, DEFERRED_SINCE_HEADER, CLOCK_AHEAD_HEADER];

function timesOf(headers: RecordHeaders): RecordHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => TIMES.includes(name)));
}

function isConfirmed(
  { companyId, appId, createdAtMs, webhookId, nextAttemptNumber, endedAtMs }: RecordSubject,
  message: Message,
  delivery: DeliveryState | undefined,
  nowMs: number,
): boolean {
  const isSame =
    message.companyId === companyId &&
    message.appId === appId &&
    message.createdAtMs === createdAtMs &&
    message.targets.includes(webhookId);
  const hasEnded = endedAtMs === null || endedAtMs <= nowMs + CLOCKS_DIFFER_MS;
  return isSame && hasEnded && nextAttemptNumber <= (delivery?.attemptCount ?? 0) + 1;
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

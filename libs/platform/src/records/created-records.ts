import { cancelReasonAtAcceptance } from '@posthorn/domain/delivery/when-cancelled.ts';
import { lifetimeOf, type Message, notStoredOf, orderOfMessage } from '@posthorn/domain/message.ts';
import {
  encodeMessageCreated,
  INLINE_PAYLOAD_MAX_BYTES,
  type MessageCreated,
} from '@posthorn/domain/records/records.ts';
import { headersOfMessage } from '@posthorn/domain/records/record-headers.ts';
import type { OutgoingRecord, RecordLog } from '../kafka/record-log.ts';

/** For more targets than this the records carry no payload: loading it costs less than so many copies. */
const INLINE_MAX_TARGETS = 32;

/** The source of the records of a message. The payload is null when they do not carry it. */
export interface CreatedSource {
  message: Omit<Message, 'payload'>;
  payload: Buffer | null;
}

export function createdSource(message: Message): CreatedSource {
  const { payload, ...rest } = message;
  const mayCarry =
    payload.length <= INLINE_PAYLOAD_MAX_BYTES &&
    message.targets.length <= INLINE_MAX_TARGETS &&
    // It is loaded when its time has come.
    message.deliverAtMs === undefined &&
    // Kafka would keep it for days.
    !message.erasesPayload;
  const bytes = mayCarry ? Buffer.from(payload) : null;
  const isCarried = bytes !== null && bytes.length <= INLINE_PAYLOAD_MAX_BYTES;
  return {
    // Not needed, and the sealed response of a wide fan-out may have a megabyte.
    message: { ...rest, idempotency: null },
    payload: isCarried ? bytes : null,
  };
}

/** One message-created record per target webhook, keyed by it. */
export function createdRecords(topic: string, message: Message): OutgoingRecord[] {
  return recordsBetween(topic, createdSource(message), 0, message.targets.length);
}

/** The records of the targets from index `begin` (inclusive) to `end` (exclusive). */
export function recordsBetween(
  topic: string,
  { message, payload }: CreatedSource,
  begin: number,
  end: number,
): OutgoingRecord[] {
  const headers = headersOfMessage(message);
  return message.targets.slice(begin, end).map((webhookId) => {
    const isCancelled = cancelReasonAtAcceptance(message, webhookId) !== null;
    const created = { ...refTo(message, webhookId), ...(isCancelled && { isCancelled }) };
    return {
      topic,
      key: webhookId,
      value: encodeMessageCreated(created, payload),
      headers,
    };
  });
}

function refTo(message: CreatedSource['message'], webhookId: string): MessageCreated {
  const { id: messageId, companyId, appId, createdAtMs, isTest } = message;
  const { deliverAtMs } = message;
  const options = {
    ...notStoredOf(message),
    ...lifetimeOf(message),
    ...orderOfMessage(message),
    ...(deliverAtMs !== undefined && { deliverAtMs }),
  };
  const ref = { messageId, webhookId, companyId, appId, createdAtMs, ...options };
  return isTest ? { ...ref, trigger: 'test' } : ref;
}

/** Records that are in memory at once: 8 MB of the largest. */
const BATCH = 500;

/** Publishes the records of each message in batches, so that those of a wide fan-out are never all in memory. */
export async function publishInBatches(
  records: Pick<RecordLog, 'publish'>,
  topic: string,
  messages: readonly Message[],
): Promise<void> {
  for (const message of messages) {
    const source = createdSource(message);
    for (let begin = 0; begin < message.targets.length; begin += BATCH) {
      await records.publish(recordsBetween(topic, source, begin, begin + BATCH));
    }
  }
}

/** The size of a record without its payload, estimated. */
const RECORD_BYTES = 300;

/** The size of one record of this message, estimated. */
export function bytesOfRecord({ payload }: CreatedSource): number {
  return RECORD_BYTES + (payload?.length ?? 0);
}

/** Returns the first messages whose records may be in memory at once; always at least one message. */
export function takeForOneSend(
  messages: readonly Message[],
  { maxMessages, maxChars }: { maxMessages: number; maxChars: number },
): Message[] {
  let chars = 0;
  let count = 0;
  for (const { payload, targets } of messages) {
    const copies = targets.length <= INLINE_MAX_TARGETS ? targets.length : 0;
    chars += payload.length * copies + targets.length * RECORD_BYTES;
    if (count > 0 && (count >= maxMessages || chars > maxChars)) break;
    count += 1;
  }
  return messages.slice(0, count);
}

/** Bounds memory only: the Kafka client divides the records into requests that a broker accepts. */
export const ONE_SEND = { maxMessages: 500, maxChars: 2_097_152 };

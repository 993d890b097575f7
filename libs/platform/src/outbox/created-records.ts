import type { Message } from '@posthorn/domain/message.ts';
import {
  encodeMessageCreated,
  INLINE_PAYLOAD_MAX_BYTES,
  type MessageCreated,
} from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '../kafka/record-log.ts';

/** Above this many targets the payload would be copied more often than it is worth; it is loaded instead. */
const INLINE_MAX_TARGETS = 32;

/** What is needed of a message to publish it; without the payload when its records do not carry it. */
export interface CreatedSource {
  message: Omit<Message, 'payload'>;
  payload: Buffer | null;
  cancelled: ReadonlySet<string>;
}

export function createdSource(message: Message): CreatedSource {
  const { payload, ...rest } = message;
  const mayCarry =
    payload.length <= INLINE_PAYLOAD_MAX_BYTES && message.targets.length <= INLINE_MAX_TARGETS;
  const bytes = mayCarry ? Buffer.from(payload) : null;
  const isCarried = bytes !== null && bytes.length <= INLINE_PAYLOAD_MAX_BYTES;
  return {
    // The sealed answer of a wide fan-out may have a megabyte.
    message: { ...rest, idempotency: null },
    payload: isCarried ? bytes : null,
    cancelled: message.disabledTargets.length === 0 ? NONE : new Set(message.disabledTargets),
  };
}

const NONE: ReadonlySet<string> = new Set();

/** One message-created record per target webhook, keyed by it. */
export function createdRecords(topic: string, message: Message): OutgoingRecord[] {
  return recordsBetween(topic, createdSource(message), 0, message.targets.length);
}

/** The records of the targets from `begin` up to `end`, which is not among them. */
export function recordsBetween(
  topic: string,
  { message, payload, cancelled }: CreatedSource,
  begin: number,
  end: number,
): OutgoingRecord[] {
  const { requestId, traceparent } = message;
  return message.targets.slice(begin, end).map((webhookId) => {
    const isCancelled = cancelled.has(webhookId);
    const created = { ...refTo(message, webhookId), ...(isCancelled && { isCancelled }) };
    return {
      topic,
      key: webhookId,
      value: encodeMessageCreated(created, payload),
      headers: { requestId, ...(traceparent && { traceparent }) },
    };
  });
}

function refTo(message: CreatedSource['message'], webhookId: string): MessageCreated {
  const { id: messageId, companyId, appId, createdAtMs, isTest } = message;
  const ref = { messageId, webhookId, companyId, appId, createdAtMs };
  return isTest ? { ...ref, trigger: 'test' } : ref;
}

/** What a record has besides its payload. */
const RECORD_BYTES = 300;

/** What one record of it takes in a send, by estimate. */
export function bytesOfRecord({ payload }: CreatedSource): number {
  return RECORD_BYTES + (payload?.length ?? 0);
}

/** As many messages from the front as should be in memory as records at once; always at least one. */
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

/** Bounds memory only; the record log cuts into requests that a broker takes. */
export const ONE_SEND = { maxMessages: 500, maxChars: 2_097_152 };

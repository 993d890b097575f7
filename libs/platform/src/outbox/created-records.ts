import type { Message } from '@posthorn/domain/message.ts';
import {
  encodeMessageCreated,
  INLINE_PAYLOAD_MAX_BYTES,
  type MessageCreated,
} from '@posthorn/domain/records.ts';
import type { OutgoingRecord } from '../kafka/record-log.ts';

/** Above this many targets the payload would be copied more often than it is worth; it is loaded instead. */
const INLINE_MAX_TARGETS = 32;

/** One message-created record per target webhook, keyed by it. */
export function createdRecords(topic: string, message: Message): OutgoingRecord[] {
  const { requestId, traceparent, disabledTargets } = message;
  const bytes = Buffer.from(message.payload);
  const isInline =
    bytes.length <= INLINE_PAYLOAD_MAX_BYTES && message.targets.length <= INLINE_MAX_TARGETS;
  return message.targets.map((webhookId) => {
    const isCancelled = disabledTargets.includes(webhookId);
    const created = { ...refTo(message, webhookId), ...(isCancelled && { isCancelled }) };
    return {
      topic,
      key: webhookId,
      value: encodeMessageCreated(created, isInline ? bytes : null),
      headers: { requestId, ...(traceparent && { traceparent }) },
    };
  });
}

function refTo(message: Message, webhookId: string): MessageCreated {
  const { id: messageId, companyId, appId, createdAtMs, isTest } = message;
  const ref = { messageId, webhookId, companyId, appId, createdAtMs };
  return isTest ? { ...ref, trigger: 'test' } : ref;
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
    chars += payload.length * copies + targets.length * 300;
    if (count > 0 && (count >= maxMessages || chars > maxChars)) break;
    count += 1;
  }
  return messages.slice(0, count);
}

/** Bounds memory only; the record log cuts into requests that a broker takes. */
export const ONE_SEND = { maxMessages: 500, maxChars: 2_097_152 };

import type { Message } from '@posthorn/domain/message.ts';
import { encodeMessageCreated, INLINE_PAYLOAD_MAX_BYTES } from '@posthorn/domain/records.ts';
import type { OutgoingRecord } from '../kafka/record-log.ts';

/** Above this many targets the payload would be copied more often than it is worth; it is loaded instead. */
const INLINE_MAX_TARGETS = 32;

/** One message-created record per target webhook, keyed by it. */
export function createdRecords(topic: string, message: Message): OutgoingRecord[] {
  const { id, companyId, appId, createdAtMs, requestId } = message;
  const bytes = Buffer.from(message.payload);
  const isInline =
    bytes.length <= INLINE_PAYLOAD_MAX_BYTES && message.targets.length <= INLINE_MAX_TARGETS;
  return message.targets.map((webhookId) => ({
    topic,
    key: webhookId,
    value: encodeMessageCreated(
      { messageId: id, webhookId, companyId, appId, createdAtMs },
      isInline ? bytes : null,
    ),
    headers: { requestId },
  }));
}

/** As many messages from the front as one produce request should carry; always at least one. */
export function takeForOneSend(
  messages: readonly Message[],
  { maxMessages, maxBytes }: { maxMessages: number; maxBytes: number },
): Message[] {
  let bytes = 0;
  let count = 0;
  for (const { payload, targets } of messages) {
    bytes += payload.length + targets.length * 300;
    if (count > 0 && (count >= maxMessages || bytes > maxBytes)) break;
    count += 1;
  }
  return messages.slice(0, count);
}

/** kafkajs makes one record batch per partition, and brokers refuse batches over 1 MiB. */
export const ONE_SEND = { maxMessages: 500, maxBytes: 524_288 };

import type { CancelReason } from '@posthorn/domain/delivery.ts';
import {
  decodeMessageCreated,
  decodeRetryDue,
  readRecord,
  UnreadableRecordError,
  type DueAttempt,
} from '@posthorn/domain/records.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { LoadedWebhook, LoadWebhook } from './load-webhook.ts';
import type { LoadPayload } from './load-payload.ts';
import type { OriginSlots } from './origin-slots.ts';
import type { SendWebhook } from './send-webhook.ts';
import type { Settle } from './settle-delivery.ts';

export interface AttemptDeps {
  topics: { messageCreated: string };
  loadWebhook: LoadWebhook;
  loadPayload: LoadPayload;
  send: SendWebhook;
  slots: OriginSlots;
  settle: Settle;
  deadLetters: DeadLetters;
}

/**
 * Step 2, attempt: one record becomes one request to the endpoint, or a cancellation when there is
 * no endpoint any more. Resolves when the outcome is recorded and its consequence published.
 */
export function createAttemptDelivery(deps: AttemptDeps) {
  return async (record: LogRecord): Promise<void> => {
    const due = readRecord(() => decode(deps, record));
    if (due instanceof UnreadableRecordError) {
      await deps.deadLetters.put(record, 'unreadable_record', due.message);
      return;
    }
    const webhook = await deps.loadWebhook(due.webhookId);
    const reason = cancelReason(webhook);
    if (!webhook || reason) await deps.settle({ due, reason: reason ?? 'webhook_deleted' });
    else await attempt(deps, record, due, webhook);
  };
}

function decode({ topics }: AttemptDeps, { topic, value }: LogRecord): DueAttempt {
  return topic === topics.messageCreated ? decodeMessageCreated(value) : decodeRetryDue(value);
}

function cancelReason(webhook: LoadedWebhook | null): CancelReason | null {
  if (!webhook) return 'webhook_deleted';
  return webhook.webhook.disabled ? 'webhook_disabled' : null;
}

async function attempt(
  deps: AttemptDeps,
  record: LogRecord,
  due: DueAttempt,
  webhook: LoadedWebhook,
): Promise<void> {
  const payload = due.payload ?? (await deps.loadPayload(due.messageId));
  if (!payload) {
    await deps.deadLetters.put(record, 'message_missing', 'the message is not stored any more');
    return;
  }
  const made = await deps.slots.within(webhook.origin, () => deps.send(due, payload, webhook));
  const requestId = record.headers.requestId ?? null;
  await deps.settle({ due, attempt: made, requestId });
}

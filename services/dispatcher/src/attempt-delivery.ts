import type { CancelReason } from '@posthorn/domain/delivery.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import {
  decodeMessageCreated,
  decodeRetryDue,
  readRecord,
  UnreadableRecordError,
  type DueAttempt,
} from '@posthorn/domain/records.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { UnopenedWebhook } from '@posthorn/platform/mongo/webhooks.ts';
import type { LoadedWebhook, LoadWebhook } from './load-webhook.ts';
import type { LoadPayload } from './load-payload.ts';
import type { OriginSlots } from './origin-slots.ts';
import type { Pace } from './pace-webhook.ts';
import type { SendWebhook } from './send-webhook.ts';
import type { Settle } from './settle-delivery.ts';

export interface AttemptDeps {
  topics: { messageCreated: string };
  loadWebhook: LoadWebhook;
  loadPayload: LoadPayload;
  send: SendWebhook;
  slots: OriginSlots;
  settle: Settle;
  pace: Pace;
  /** Does the work unless this resend was made already or is not asked for any more. */
  resendOnce: (due: DueAttempt, work: () => Promise<void>) => Promise<void>;
  nowMs: () => number;
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
    const work = (): Promise<void> => deliver(deps, record, due);
    await (due.trigger === 'resend' ? deps.resendOnce(due, work) : work());
  };
}

async function deliver(deps: AttemptDeps, record: LogRecord, due: DueAttempt): Promise<void> {
  // Cancelled when it was accepted: final, also when the webhook was enabled meanwhile.
  if (due.isCancelled) return deps.settle({ due, reason: 'webhook_disabled' });
  const webhook = await deps.loadWebhook(due.webhookId);
  const reason = cancelReason(webhook);
  if (!webhook || reason) await deps.settle({ due, reason: reason ?? 'webhook_deleted' });
  else if ('problem' in webhook) await abort(deps, record, due);
  else await attempt(deps, record, due, webhook);
}

function decode({ topics }: AttemptDeps, { topic, value }: LogRecord): DueAttempt {
  return topic === topics.messageCreated ? decodeMessageCreated(value) : decodeRetryDue(value);
}

function cancelReason(found: LoadedWebhook | UnopenedWebhook | null): CancelReason | null {
  if (!found) return 'webhook_deleted';
  const { disabled } = 'problem' in found ? found : found.webhook;
  return disabled ? 'webhook_disabled' : null;
}

async function attempt(
  deps: AttemptDeps,
  record: LogRecord,
  due: DueAttempt,
  webhook: LoadedWebhook,
): Promise<void> {
  if (!(await deps.pace(record, due, webhook.webhook))) return;
  const payload = due.payload ?? (await deps.loadPayload(due.messageId));
  if (!payload) {
    await deps.deadLetters.put(record, 'message_missing', 'the message is not stored any more');
    await deps.settle({ due, reason: 'message_missing' });
    return;
  }
  const { headers } = record;
  const made = await deps.slots.within(webhook.origin, () =>
    deps.send(due, payload, webhook, headers.traceparent),
  );
  // Looked up again: what was deleted during the attempt must not wait for its retry to end.
  const reason =
    made.outcome === 'success' ? null : cancelReason(await deps.loadWebhook(due.webhookId));
  await deps.settle({ due, attempt: made, headers, reason });
}

/** Nothing is sent that could not be signed as agreed; the schedule leaves time to mend it. */
async function abort(deps: AttemptDeps, record: LogRecord, due: DueAttempt): Promise<void> {
  const { messageId, webhookId, attemptNumber: number, trigger } = due;
  const id = attemptIdOf(deliveryIdOf(messageId, webhookId), number);
  const nothing = { statusCode: null, response: null, responseHeaders: [] };
  const made = { id, number, trigger, startedAtMs: deps.nowMs(), durationMs: 0, ...nothing };
  const { headers } = record;
  await deps.settle({ due, attempt: { ...made, outcome: 'aborted' }, headers });
}

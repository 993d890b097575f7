import type { CancelReason } from '@posthorn/domain/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { UnopenedWebhook } from '@posthorn/platform/mongo/webhooks.ts';
import type { LoadedWebhook, LoadWebhook } from './load-webhook.ts';
import { lastingHeaders } from './put-off.ts';
import type { Settle } from './settle-delivery.ts';

/** The webhook an attempt goes to; null when there is none to go to, and that is settled then. */
export type FindTarget = (
  due: DueAttempt,
  headers: LogRecord['headers'],
) => Promise<LoadedWebhook | null>;

export interface FindTargetDeps {
  loadWebhook: LoadWebhook;
  settle: Settle;
  nowMs: () => number;
}

export function createFindTarget(deps: FindTargetDeps): FindTarget {
  return async (due, headers) => {
    const webhook = await deps.loadWebhook(due.webhookId);
    const reason = cancelReason(webhook);
    if (!webhook || reason) await deps.settle({ due, reason: reason ?? 'webhook_deleted' });
    else if ('problem' in webhook) await abort(deps, due, headers);
    else return webhook;
    return null;
  };
}

export function cancelReason(found: LoadedWebhook | UnopenedWebhook | null): CancelReason | null {
  if (!found) return 'webhook_deleted';
  const { disabled } = 'problem' in found ? found : found.webhook;
  return disabled ? 'webhook_disabled' : null;
}

/** Nothing is sent that could not be signed as agreed; the schedule leaves time to mend it. */
async function abort(
  deps: FindTargetDeps,
  due: DueAttempt,
  headers: LogRecord['headers'],
): Promise<void> {
  const { attemptId: id, attemptNumber: number, trigger } = due;
  const nothing = { statusCode: null, response: null, responseHeaders: [] };
  const made = { id, number, trigger, startedAtMs: deps.nowMs(), durationMs: 0, ...nothing };
  const attempt = { ...made, outcome: 'aborted' as const };
  await deps.settle({ due, attempt, headers: lastingHeaders(headers) });
}

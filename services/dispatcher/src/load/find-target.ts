import type { CancelReason } from '@posthorn/domain/delivery.ts';
import type { UnopenedWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { LoadedWebhook, LoadWebhook } from './load-webhook.ts';

/** Where an attempt goes, or why it goes nowhere. */
export type Target =
  | { kind: 'send'; to: LoadedWebhook }
  | { kind: 'cancel'; reason: CancelReason }
  /** Nothing is sent that could not be signed as agreed; the schedule leaves time to mend it. */
  | { kind: 'abort' };

export async function findTarget(load: LoadWebhook, webhookId: string): Promise<Target> {
  const found = await load(webhookId);
  const reason = cancelReason(found);
  if (!found || reason) return { kind: 'cancel', reason: reason ?? 'webhook_deleted' };
  return 'problem' in found ? { kind: 'abort' } : { kind: 'send', to: found };
}

export function cancelReason(found: LoadedWebhook | UnopenedWebhook | null): CancelReason | null {
  if (!found) return 'webhook_deleted';
  const { disabled } = 'problem' in found ? found : found.webhook;
  return disabled ? 'webhook_disabled' : null;
}

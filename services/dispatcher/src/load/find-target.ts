import type { CancelReason, DeliveryRef } from '@posthorn/domain/message/delivery.ts';
import { cancelReasonOf } from '@posthorn/domain/delivery-lifecycle/when-cancelled.ts';
import type { FoundWebhook, LoadedWebhook, LoadWebhook } from './load-webhook.ts';

/** Where an attempt goes, or why it goes nowhere. */
export type Target =
  | { kind: 'send'; to: LoadedWebhook }
  | { kind: 'cancel'; reason: CancelReason }
  /**
   * The stored secrets cannot be opened, and nothing is sent that cannot be signed. The attempt fails,
   * and the schedule leaves time to mend it.
   */
  | { kind: 'abort'; appId: string | null }
  /** The webhook belongs to another company than the record says. */
  | { kind: 'company_mismatch' };

export async function findTarget(
  load: LoadWebhook,
  { webhookId, companyId }: Pick<DeliveryRef, 'webhookId' | 'companyId'>,
): Promise<Target> {
  const found = await load(webhookId);
  if (found && companyOf(found) !== companyId) return { kind: 'company_mismatch' };
  const reason = cancelReasonOf(stateOf(found));
  if (reason) return { kind: 'cancel', reason };
  if (found?.kind === 'opened') return { kind: 'send', to: found };
  return { kind: 'abort', appId: found?.appId ?? null };
}

/** Null while deliveries to the webhook are attempted. */
export async function findCancelReason(
  load: LoadWebhook,
  webhookId: string,
): Promise<CancelReason | null> {
  return cancelReasonOf(stateOf(await load(webhookId)));
}

function companyOf(found: FoundWebhook): string {
  return found.kind === 'opened' ? found.webhook.companyId : found.companyId;
}

function stateOf(found: FoundWebhook | null): { disabled: boolean } | null {
  return found?.kind === 'opened' ? found.webhook : found;
}

import { type CancelReason, type Delivery, isFinal } from '@posthorn/domain/delivery/delivery.ts';
import { settleCancelled } from '@posthorn/domain/delivery/settlement.ts';
import { CANCELLED_BY_CLIENT } from '@posthorn/domain/delivery/when-cancelled.ts';
import { type IdPrefix, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Changed } from '@posthorn/platform/mongo/company-documents.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { SequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { ApiError, invalidRequest, notFound } from '../api-error.ts';
import { readDelivery, type ReadDelivery, type ReadDeps } from '../history/deliveries.ts';
import { goOnBehind } from '../history/go-on-behind.ts';
import type { ChangeWebhook } from './webhooks.ts';

export interface StoreCancelledDeps {
  deliveryStore: Pick<DeliveryStore, 'insertAll' | 'cancelPending'>;
  nowMs: () => number;
}

interface CancelDeps extends ReadDeps, StoreCancelledDeps {
  sequences: Pick<SequenceStore, 'makeDue'>;
}

/**
 * Cancels a pending delivery and returns it. An attempt that is under way is not stopped: its success delivers the
 * delivery. Throws ApiError 404 for an unknown delivery, 409 when it has ended.
 */
export async function cancelDelivery(
  deps: CancelDeps,
  companyId: string,
  deliveryId: string,
): Promise<ReadDelivery> {
  const seen = await readDelivery(deps, companyId, deliveryId);
  if (!seen) throw notFound('delivery');
  if (isFinal(seen.source.status)) throw new ApiError('delivery_final');
  await storeCancelled(deps, seen.source, CANCELLED_BY_CLIENT);
  await goOnBehind(deps, seen.source, [seen.source.webhookId]);
  const cancelled = await readDelivery(deps, companyId, deliveryId);
  if (cancelled?.source.status !== 'cancelled') throw new ApiError('delivery_final');
  return cancelled;
}

/** Stores a delivery as cancelled, unless it is stored as one that has ended. */
export async function storeCancelled(
  { deliveryStore, nowMs }: StoreCancelledDeps,
  delivery: Delivery,
  reason: CancelReason,
): Promise<void> {
  const { id, attemptCount } = delivery;
  const atMs = nowMs();
  // Before its first attempt it has no document. One that it gets meanwhile is changed by the second write.
  if (attemptCount === 0) {
    await deliveryStore.insertAll([settleCancelled({ ...delivery, deliveryId: id }, reason, atMs)]);
  }
  await deliveryStore.cancelPending([{ id, reason, atMs }]);
}

interface CancelPendingDeps {
  changeWebhook: ChangeWebhook;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

interface PendingToCancel {
  companyId: string;
  webhookId: string;
  /** Milliseconds since 1970; null for now. */
  createdBeforeMs: number | null;
}

/**
 * Cancels the pending deliveries to a webhook that were created before a time, in one write: dispatchers compare it at
 * each attempt, and lists show it. The retry service stores it in each delivery (settle-cancellations.ts). Of several
 * times the latest one counts. Throws ApiError 404 for an unknown webhook, 400 for a time in the future.
 */
export async function cancelPending(
  { changeWebhook, newId, nowMs }: CancelPendingDeps,
  { companyId, webhookId, createdBeforeMs }: PendingToCancel,
): Promise<Changed<Webhook>> {
  // A message that was accepted in this millisecond is one that the client has sent before.
  const beforeMs = createdBeforeMs ?? timeMsOf(newId('msg')) + 1;
  if (createdBeforeMs !== null && createdBeforeMs > nowMs()) {
    throw invalidRequest([{ path: 'createdBefore', message: 'must not be in the future' }]);
  }
  return changeWebhook({ companyId, webhookId }, ({ cancelBeforeMs }) =>
    (cancelBeforeMs ?? 0) >= beforeMs ? null : { cancelBeforeMs: beforeMs },
  );
}

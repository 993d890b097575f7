import { deliveryIdOf } from '../ids.ts';
import { type Message, type NotStored, notStoredOf } from '../message.ts';
import {
  type Attempt,
  type CancelReason,
  type Delivery,
  type DeliveryRef,
  endedAtMs,
  refOf,
} from './delivery.ts';
import { nextAttemptAfter, type RetrySchedule } from './schedule.ts';
import { cancelReasonAtAcceptance } from './when-cancelled.ts';

/** A delivery to be recorded after one attempt, with that attempt only; without an attempt before the first one. */
export interface SettledDelivery extends Omit<Delivery, 'attempts' | 'attemptCount'> {
  attempt: Attempt | null;
}

/** A reference with its delivery id: deriving the id costs the dispatcher 1 % each time. */
export interface IdentifiedRef extends DeliveryRef {
  deliveryId: string;
}

/**
 * Returns the delivery after an attempt. A success delivers it. A failure cancels it when `cancelReason` is given:
 * its webhook was deleted or disabled during the attempt. After any other failure it is pending, also after the last
 * one of the schedule: only the retry service ends a schedule, so that `exhausted` and its dead letter come from one
 * place.
 */
export function settleAttempt(
  ref: IdentifiedRef,
  attempt: Attempt,
  cancelReason: CancelReason | null,
  schedule: RetrySchedule,
): SettledDelivery {
  const atMs = endedAtMs(attempt);
  const made = settledAt(ref, attempt, atMs);
  if (attempt.outcome === 'success') return { ...made, status: 'delivered' };
  if (cancelReason) return { ...made, status: 'cancelled', reason: cancelReason };
  const next = nextAttemptAfter({ attemptNumber: attempt.number, endedAtMs: atMs }, schedule);
  return { ...made, nextAttemptAtMs: next?.dueAtMs ?? null };
}

/** Returns a delivery that ends at `atMs` (milliseconds since 1970) instead of having the attempt that was due. */
export function settleCancelled(
  ref: IdentifiedRef,
  reason: CancelReason,
  atMs: number,
): SettledDelivery {
  return { ...settledAt(ref, null, atMs), status: 'cancelled', reason };
}

/**
 * Returns the delivery of a target before its first attempt: cancelled when the webhook was disabled when the message
 * was accepted, otherwise due since then. It is recorded at `atMs` (milliseconds since 1970).
 */
export function unattemptedDelivery(
  message: Pick<Message, 'id' | 'companyId' | 'appId' | 'disabledTargets' | 'createdAtMs'> &
    NotStored,
  webhookId: string,
  atMs: number,
): SettledDelivery {
  const { id: messageId, companyId, appId, createdAtMs } = message;
  const deliveryId = deliveryIdOf(messageId, webhookId);
  const notStored = notStoredOf(message);
  const ref = { deliveryId, messageId, webhookId, companyId, appId, createdAtMs, ...notStored };
  const reason = cancelReasonAtAcceptance(message, webhookId);
  if (reason) return settleCancelled(ref, reason, atMs);
  return { ...settledAt(ref, null, atMs), nextAttemptAtMs: createdAtMs };
}

/** Returns a pending delivery without a next attempt. */
function settledAt(
  ref: IdentifiedRef,
  attempt: Attempt | null,
  updatedAtMs: number,
): SettledDelivery {
  return {
    id: ref.deliveryId,
    ...refOf(ref),
    status: 'pending',
    reason: null,
    attempt,
    nextAttemptAtMs: null,
    updatedAtMs,
  };
}

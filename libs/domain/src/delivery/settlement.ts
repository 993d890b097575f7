import { deliveryIdOf } from '../ids.ts';
import {
  type Lifetime,
  lifetimeOf,
  type Message,
  type NotStored,
  notStoredOf,
  orderOfMessage,
} from '../message.ts';
import {
  type Attempt,
  type CancelReason,
  type Delivery,
  type DeliveryRef,
  endedAtMs,
  refOf,
} from './delivery.ts';
import { nextAttemptAfter, type RetrySchedule } from './schedule.ts';
import type { Waiting } from '../waiting.ts';
import { cancelReasonAtAcceptance } from './when-cancelled.ts';

/** A delivery to be recorded after one attempt, with that attempt only; without an attempt before the first one. */
export interface SettledDelivery extends Omit<
  Delivery,
  'attempts' | 'attemptCount' | 'reason' | 'waiting' | 'waitingSinceMs'
> {
  attempt: Attempt | null;
  reason: CancelReason | null;
  /** Only of a delivery that begins to wait before the attempt of this number. */
  wait?: { waiting: Waiting; attemptNumber: number };
}

/** A reference with its delivery id: deriving the id costs the dispatcher 1 % each time. */
export interface IdentifiedRef extends DeliveryRef {
  deliveryId: string;
}

/**
 * Returns the delivery after an attempt. A success delivers it. A failure cancels it when `cancelReason` is given:
 * its webhook was deleted or disabled during the attempt, or its message expires before the next one. After any other
 * failure it is pending, also after the last one of the schedule or of its webhook: only the retry service ends a
 * schedule, so that `exhausted` and its dead letter come from one place.
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
  const { number: attemptNumber, ending } = attempt;
  const next = nextAttemptAfter({ attemptNumber, endedAtMs: atMs, ending }, schedule);
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
 * Returns a delivery that waits from `atMs` (milliseconds since 1970) on for the attempt of this number, which uses up
 * none of the schedule. It is stored as due then, or at `dueAtMs`.
 */
export function settleWaiting(
  ref: IdentifiedRef & { attemptNumber: number },
  waiting: Waiting,
  atMs: number,
  dueAtMs: number = atMs,
): SettledDelivery {
  return {
    ...settledAt(ref, null, atMs),
    nextAttemptAtMs: dueAtMs,
    wait: { waiting, attemptNumber: ref.attemptNumber },
  };
}

/**
 * Returns the delivery of a target before its first attempt: cancelled when the webhook was disabled when the message
 * was accepted, otherwise due since then, or waiting for the time of the message. It is recorded at `atMs` (milliseconds
 * since 1970).
 */
export function unattemptedDelivery(
  message: Pick<
    Message,
    | 'id'
    | 'companyId'
    | 'appId'
    | 'disabledTargets'
    | 'createdAtMs'
    | 'deliverAtMs'
    | 'isOrdered'
    | 'orderingKey'
  > &
    NotStored &
    Lifetime,
  webhookId: string,
  atMs: number,
): SettledDelivery {
  const { id: messageId, companyId, appId, createdAtMs } = message;
  const deliveryId = deliveryIdOf(messageId, webhookId);
  const options = {
    ...notStoredOf(message),
    ...lifetimeOf(message),
    ...orderOfMessage(message),
  };
  const ref = { deliveryId, messageId, webhookId, companyId, appId, createdAtMs, ...options };
  const reason = cancelReasonAtAcceptance(message, webhookId);
  if (reason) return settleCancelled(ref, reason, atMs);
  const { deliverAtMs } = message;
  if (deliverAtMs !== undefined && deliverAtMs > atMs) {
    return settleWaiting({ ...ref, attemptNumber: 1 }, 'time', atMs, deliverAtMs);
  }
  return { ...settledAt(ref, null, atMs), nextAttemptAtMs: deliverAtMs ?? createdAtMs };
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

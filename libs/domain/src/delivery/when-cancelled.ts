import type { InOrder, Lifetime, Message } from '../message.ts';
import {
  awaitsAttempt,
  type CancelReason,
  type DeliveryState,
  isFinal,
  type Trigger,
} from './delivery.ts';
import { type Holders, isOnHold } from '../waiting.ts';

/**
 * When a delivery is cancelled (docs/contract.md C10.8). These are all the cases:
 *
 * 1. Its webhook is disabled when the message is accepted: `cancelReasonAtAcceptance`. This is final,
 *    also when the webhook is enabled a moment later. The message states it, and lists derive the delivery
 *    from it (platform/mongo/messages/stated-deliveries.ts): it gets a document when a resend marks it.
 * 2. An attempt is due and its webhook is deleted or disabled: `cancelReasonOf`. The dispatcher checks
 *    this right before each request, the retry service when it releases a parked attempt.
 * 3. An attempt failed, and its webhook was deleted or disabled meanwhile: `cancelReasonOf` again, when
 *    the attempt is settled (`settleAttempt`). A success delivers in any case.
 * 4. An attempt is due and its message is no longer stored: `MESSAGE_MISSING`.
 * 5. The webhook, its app or its project is deleted: all pending deliveries of the webhook are
 *    cancelled by one query, with `WEBHOOK_REMOVED` (`cancelPending` in platform/mongo/removals.ts).
 * 6. A client cancels what is pending at a webhook: `cancelBeforeMs` of the webhook, which `cancelReasonOf` compares, so
 *    that one write stops a million deliveries. The gateway shows them as cancelled from then on (`isCancelledBefore`), and
 *    the retry service stores it (settle-cancellations.ts). A client may also cancel one delivery, and all that a filter
 *    selects: dispatchers compare the filter right before each request and when an attempt has failed
 *    (filter-cancellation.ts), and the retry service stores it (cancel-selected.ts).
 * 7. A client erases the payload of the message: all pending deliveries of the message are cancelled, with
 *    `PAYLOAD_ERASED` (`eraseMessage` in platform/mongo/messages/requested-erasures.ts). The dispatcher checks it right
 *    before each request too, because the record of a first attempt has the payload.
 * 8. A delivery waits, and its webhook is deleted or disabled, or it will expire within a day: `fateOfWaiting`, which
 *    the release of waiting deliveries and their sweep apply.
 * 9. The message expires: `expiryReasonAt`. It is checked right before each request and at each release. A delivery whose
 *    next attempt would be later than that ends as soon as this is known: when its attempt has failed, or is deferred. One
 *    that is on hold is ended by the retry service (end-expired.ts).
 *
 * Only a pending delivery is cancelled. An attempt under way is recorded nevertheless, and its success
 * delivers the delivery. A resend that cannot be made does not change its delivery.
 */

/** Case 1. */
export const DISABLED_AT_ACCEPTANCE: CancelReason = 'webhook_disabled';

/** Case 4. */
export const MESSAGE_MISSING: CancelReason = 'message_missing';

/** Case 5. */
export const WEBHOOK_REMOVED: CancelReason = 'webhook_deleted';

/** Case 6. */
export const CANCELLED_BY_CLIENT: CancelReason = 'cancelled_by_client';

/** Case 7. */
export const PAYLOAD_ERASED: CancelReason = 'payload_erased';

/** Case 1 for one target. Returns null when the webhook was enabled: the delivery is attempted. */
export function cancelReasonAtAcceptance(
  { disabledTargets }: Pick<Message, 'disabledTargets'>,
  webhookId: string,
): CancelReason | null {
  return disabledTargets.has(webhookId) ? DISABLED_AT_ACCEPTANCE : null;
}

/** Returns the status of a delivery before it is recorded. */
export function statusBeforeAttempts(
  message: Pick<Message, 'disabledTargets'>,
  webhookId: string,
): 'pending' | 'cancelled' {
  return cancelReasonAtAcceptance(message, webhookId) ? 'cancelled' : 'pending';
}

/** The state of a webhook that decides about its deliveries. */
export interface WebhookStops {
  disabled: boolean;
  /** Deliveries that were created before this time are cancelled, in milliseconds since 1970; null for none. */
  cancelBeforeMs: number | null;
}

/** The attempt that is due, or was made. */
interface Cancellable {
  createdAtMs: number;
  trigger: Trigger;
}

/** Cases 2, 3 and 6. `webhook` is the stored one, null or undefined after its deletion. */
export function cancelReasonOf(
  webhook: WebhookStops | null | undefined,
  { createdAtMs, trigger }: Cancellable,
): CancelReason | null {
  const reason = stopReasonOf(webhook);
  if (!webhook || reason) return reason;
  // A client asks for the resend of a delivery that has ended, such as one that was cancelled.
  if (trigger === 'resend') return null;
  return isCancelledBefore(webhook.cancelBeforeMs, createdAtMs) ? CANCELLED_BY_CLIENT : null;
}

function stopReasonOf(webhook: { disabled: boolean } | null | undefined): CancelReason | null {
  if (!webhook) return 'webhook_deleted';
  return webhook.disabled ? 'webhook_disabled' : null;
}

/** Case 6: whether a pending delivery that was created then is cancelled. */
export function isCancelledBefore(cancelBeforeMs: number | null, createdAtMs: number): boolean {
  return cancelBeforeMs !== null && createdAtMs < cancelBeforeMs;
}

/** Case 8, when one day is left. */
export const EXPIRED_WHILE_WAITING: CancelReason = 'expired_while_waiting';

/** The decision about a waiting delivery. */
export type WaitingFate =
  { kind: 'wait' } | { kind: 'release' } | { kind: 'cancel'; reason: CancelReason };

/** Case 8, in the order in which an attempt that is due is decided about. Case 6 is for single deliveries. */
export function fateOfWaiting(
  holders: Holders & { webhook: { disabled: boolean } | null },
  nowMs: number,
): WaitingFate {
  const reason = stopReasonOf(holders.webhook);
  if (reason) return { kind: 'cancel', reason };
  return isOnHold(holders, nowMs) ? { kind: 'wait' } : { kind: 'release' };
}

/** Case 9: whether an attempt at `atMs` (milliseconds since 1970) would be too late. */
export function expiryReasonAt(
  { expiresAtMs, removeAtMs }: { [Name in keyof Lifetime]: Lifetime[Name] | undefined },
  atMs: number,
): 'expired' | null {
  const isOver = (endMs: number | undefined): boolean => endMs !== undefined && endMs <= atMs;
  return isOver(expiresAtMs) || isOver(removeAtMs) ? 'expired' : null;
}

/** The decision about a parked or deferred attempt that is due. */
type ReleaseDecision =
  /** `isLookedUp`: the dispatcher is to look up what is recorded, and makes no attempt of a delivery that has ended. */
  | { kind: 'release'; isLookedUp?: true }
  | { kind: 'drop' }
  | { kind: 'cancel'; reason: CancelReason };

export interface Releasable {
  due: Cancellable & Lifetime & InOrder & { attemptNumber: number };
  /** Milliseconds since 1970. */
  nowMs: number;
  /** The attempt was deferred, or published by the sweep: its record may be the only one. */
  isDeferred: boolean;
  /** Undefined before the delivery is recorded. */
  delivery: DeliveryState | undefined;
  /** Undefined after its deletion. */
  webhook: WebhookStops | undefined;
}

const RELEASE: ReleaseDecision = { kind: 'release' };
const RELEASE_LOOKED_UP: ReleaseDecision = { kind: 'release', isLookedUp: true };
const DROP: ReleaseDecision = { kind: 'drop' };

/**
 * Decides by the records at the moment of release, not by those at the moment of parking. Three kinds are always
 * released, because only the dispatcher can settle them: a resend, whose mark decides; a delivery that is not
 * recorded yet; and an attempt that one dispatcher deferred while another made it, and may have died before it
 * published the failure. So is a delivery with an ordering key that has ended or is to be cancelled: the dispatcher goes on
 * behind it.
 */
export function decideRelease(parked: Releasable): ReleaseDecision {
  const { due, nowMs, isDeferred, delivery, webhook } = parked;
  if (due.trigger === 'resend' || !delivery) return RELEASE;
  const isRecorded = delivery.status === 'pending' && delivery.attemptCount === due.attemptNumber;
  const isWanted = awaitsAttempt(delivery, due.attemptNumber) || (isDeferred && isRecorded);
  const isOrdered = due.orderingKey !== undefined;
  if (!isWanted) return isOrdered && isFinal(delivery.status) ? RELEASE_LOOKED_UP : DROP;
  const reason = cancelReasonOf(webhook, due) ?? expiryReasonAt(due, nowMs);
  if (!reason) return RELEASE;
  return isOrdered ? RELEASE_LOOKED_UP : { kind: 'cancel', reason };
}

import type { Message } from '../message.ts';
import { awaitsAttempt, type CancelReason, type DeliveryState, type Trigger } from './delivery.ts';

/**
 * When a delivery is cancelled (docs/contract.md C10.8). These are all the cases:
 *
 * 1. Its webhook is disabled when the message is accepted: `cancelReasonAtAcceptance`. This is final,
 *    also when the webhook is enabled a moment later. The gateway stores the cancellation before it
 *    responds. Otherwise the dispatcher stores it (`isCancelled` in the message-created record), or, when
 *    the records of the message were lost, the sweep of the retry service.
 * 2. An attempt is due and its webhook is deleted or disabled: `cancelReasonOf`. The dispatcher checks
 *    this right before each request, the retry service when it releases a parked attempt.
 * 3. An attempt failed, and its webhook was deleted or disabled meanwhile: `cancelReasonOf` again, when
 *    the attempt is settled (`settleAttempt`). A success delivers in any case.
 * 4. An attempt is due and its message is no longer stored: `MESSAGE_MISSING`.
 * 5. The webhook, its app or its project is deleted: all pending deliveries of the webhook are
 *    cancelled by one query, with `WEBHOOK_REMOVED` (`cancelPending` in platform/mongo/removals.ts).
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

/** Cases 2 and 3. `webhook` is the stored one, null or undefined after its deletion. */
export function cancelReasonOf(
  webhook: { disabled: boolean } | null | undefined,
): 'webhook_deleted' | 'webhook_disabled' | null {
  if (!webhook) return 'webhook_deleted';
  return webhook.disabled ? 'webhook_disabled' : null;
}

/** The decision about a parked or deferred attempt that is due. */
type ReleaseDecision =
  { kind: 'release' } | { kind: 'drop' } | { kind: 'cancel'; reason: CancelReason };

export interface Releasable {
  due: { attemptNumber: number; trigger: Trigger };
  /** The attempt was deferred, or published by the sweep: its record may be the only one. */
  isDeferred: boolean;
  /** Undefined before the delivery is recorded. */
  delivery: DeliveryState | undefined;
  /** Undefined after its deletion. */
  webhook: { disabled: boolean } | undefined;
}

const RELEASE: ReleaseDecision = { kind: 'release' };
const DROP: ReleaseDecision = { kind: 'drop' };

/**
 * Decides by the records at the moment of release, not by those at the moment of parking. Three kinds are always
 * released, because only the dispatcher can settle them: a resend, whose mark decides; a delivery that is not
 * recorded yet; and an attempt that one dispatcher deferred while another made it, and may have died before it
 * published the failure.
 */
export function decideRelease(parked: Releasable): ReleaseDecision {
  const { due, isDeferred, delivery, webhook } = parked;
  if (due.trigger === 'resend' || !delivery) return RELEASE;
  const isRecorded = delivery.status === 'pending' && delivery.attemptCount === due.attemptNumber;
  const isWanted = awaitsAttempt(delivery, due.attemptNumber) || (isDeferred && isRecorded);
  if (!isWanted) return DROP;
  const reason = cancelReasonOf(webhook);
  return reason ? { kind: 'cancel', reason } : RELEASE;
}

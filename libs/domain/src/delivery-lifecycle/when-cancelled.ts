import type { CancelReason } from '../message/delivery.ts';
import type { Message } from '../message/message.ts';

/**
 * When a delivery is cancelled (docs/contract.md C10.8). These are all the cases:
 *
 * 1. Its webhook is disabled when the message is accepted: `cancelReasonAtAcceptance`. This is final,
 *    also when the webhook is enabled a moment later. The gateway stores the cancellation before it
 *    responds. When it cannot, the dispatcher does so (`isCancelled` in the message-created record),
 *    and for a message whose records were lost the sweep of the retry service.
 * 2. An attempt is due and its webhook is deleted or disabled: `cancelReasonOf`. The dispatcher asks
 *    right before each request, the retry service when it releases a parked attempt.
 * 3. An attempt failed, and its webhook was deleted or disabled meanwhile: `cancelReasonOf` again, when
 *    the attempt is settled (`settleAttempt`). A success delivers in any case.
 * 4. An attempt is due and its message is not stored any more: `MESSAGE_MISSING`.
 * 5. The webhook, its app or its project is deleted: all pending deliveries of the webhook are
 *    cancelled by one query, with `WEBHOOK_REMOVED` (`cancelPending` in platform/mongo/removals.ts).
 *
 * Only a pending delivery is cancelled. An attempt that was under way meanwhile is still recorded,
 * and its success makes the delivery delivered. A resend that cannot be made leaves its delivery as
 * it is.
 */

/** Case 1. */
export const DISABLED_AT_ACCEPTANCE: CancelReason = 'webhook_disabled';

/** Case 4. */
export const MESSAGE_MISSING: CancelReason = 'message_missing';

/** Case 5. */
export const WEBHOOK_REMOVED: CancelReason = 'webhook_deleted';

/** Case 1 for one target. Returns null when the webhook was enabled, so that the delivery is attempted. */
export function cancelReasonAtAcceptance(
  { disabledTargets }: Pick<Message, 'disabledTargets'>,
  webhookId: string,
): CancelReason | null {
  return disabledTargets.has(webhookId) ? DISABLED_AT_ACCEPTANCE : null;
}

/** The status of a delivery that is not recorded yet. */
export function statusBeforeAttempts(
  message: Pick<Message, 'disabledTargets'>,
  webhookId: string,
): 'pending' | 'cancelled' {
  return cancelReasonAtAcceptance(message, webhookId) ? 'cancelled' : 'pending';
}

/** Cases 2 and 3. Takes the webhook as it is now, null or undefined when it is not stored any more. */
export function cancelReasonOf(
  webhook: { disabled: boolean } | null | undefined,
): 'webhook_deleted' | 'webhook_disabled' | null {
  if (!webhook) return 'webhook_deleted';
  return webhook.disabled ? 'webhook_disabled' : null;
}

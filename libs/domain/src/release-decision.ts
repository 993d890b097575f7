import { awaitsAttempt, type CancelReason, type DeliveryStatus, type Trigger } from './delivery.ts';

/** What becomes of a parked attempt when it is due; a reason says that its delivery is cancelled. */
export type ReleaseDecision = 'release' | 'drop' | CancelReason;

export interface Releasable {
  due: { attemptNumber: number; trigger: Trigger };
  /** Undefined while nothing of it is recorded. */
  delivery: { status: DeliveryStatus; attemptCount: number } | undefined;
  /** Undefined when it was deleted. */
  webhook: { disabled: boolean } | undefined;
}

/**
 * Decides by what is recorded at the moment of release, not by what was true when it was parked.
 * Two kinds go on in any case, because the dispatcher alone can settle them: a resend, which its
 * mark decides, and a delivery of which nothing is recorded yet.
 */
export function decideRelease({ due, delivery, webhook }: Releasable): ReleaseDecision {
  if (due.trigger === 'resend' || !delivery) return 'release';
  if (!awaitsAttempt(delivery, due.attemptNumber)) return 'drop';
  if (!webhook) return 'webhook_deleted';
  return webhook.disabled ? 'webhook_disabled' : 'release';
}

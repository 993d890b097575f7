import { awaitsAttempt, type CancelReason, type DeliveryStatus, type Trigger } from './delivery.ts';

/** What becomes of a parked attempt when it is due; a reason says that its delivery is cancelled. */
export type ReleaseDecision = 'release' | 'drop' | CancelReason;

export interface Releasable {
  due: { attemptNumber: number; trigger: Trigger };
  /** It comes from the dispatcher and not from a failure: it may be the only record of the attempt. */
  isPutOff: boolean;
  /** Undefined while nothing of it is recorded. */
  delivery: { status: DeliveryStatus; attemptCount: number } | undefined;
  /** Undefined when it was deleted. */
  webhook: { disabled: boolean } | undefined;
}

/**
 * Decides by what is recorded at the moment of release, not by what was true when it was parked.
 * Two kinds go on in any case, because the dispatcher alone can settle them: a resend, which its
 * mark decides, and a delivery of which nothing is recorded yet. So can it alone what was deferred by
 * one dispatcher while another made the attempt, and may have died before it published the failure.
 */
export function decideRelease({ due, isPutOff, delivery, webhook }: Releasable): ReleaseDecision {
  if (due.trigger === 'resend' || !delivery) return 'release';
  const isRecorded = delivery.status === 'pending' && delivery.attemptCount === due.attemptNumber;
  const isWanted = awaitsAttempt(delivery, due.attemptNumber) || (isPutOff && isRecorded);
  if (!isWanted) return 'drop';
  if (!webhook) return 'webhook_deleted';
  return webhook.disabled ? 'webhook_disabled' : 'release';
}

import {
  awaitsAttempt,
  type CancelReason,
  type DeliveryState,
  type Trigger,
} from '../message/delivery.ts';
import { cancelReasonOf } from './when-cancelled.ts';

/** What becomes of a parked or deferred attempt when it is due. */
export type ReleaseDecision =
  { kind: 'release' } | { kind: 'drop' } | { kind: 'cancel'; reason: CancelReason };

export interface Releasable {
  due: { attemptNumber: number; trigger: Trigger };
  /** It was deferred, or published by the sweep: its record may be the only one of the attempt. */
  isDeferred: boolean;
  /** Undefined while nothing of it is recorded. */
  delivery: DeliveryState | undefined;
  /** Undefined when it was deleted. */
  webhook: { disabled: boolean } | undefined;
}

const RELEASE: ReleaseDecision = { kind: 'release' };
const DROP: ReleaseDecision = { kind: 'drop' };

/**
 * Decides by what is recorded at the moment of release, not by what was true when it was parked.
 * Three kinds are released in any case, because only the dispatcher can settle them: a resend, whose
 * mark decides; a delivery of which nothing is recorded yet; and what one dispatcher deferred while
 * another made the attempt, and may have died before it published the failure.
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

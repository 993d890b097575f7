import type { DeliveryRef, Trigger } from '../delivery/delivery.ts';
import { attemptIdOf, deliveryIdOf } from '../ids.ts';

/** One attempt that is to be made now, from a message-created or a retry-due record. */
export interface DueAttempt extends DeliveryRef {
  /** Both ids are derived once: five steps need them, and each derivation took 1 % of the dispatcher. */
  deliveryId: string;
  attemptId: string;
  attemptNumber: number;
  trigger: Trigger;
  /** Milliseconds since 1970. */
  dueAtMs: number;
  /** The webhook was disabled when the message was accepted: the delivery is recorded as cancelled. */
  isCancelled: boolean;
  /** No attempt begins before it, in milliseconds since 1970. Absent once an attempt was made or deferred. */
  deliverAtMs?: number;
  /** Its delivery has a document, as far as the record knows: the outcome is an update and no insert. */
  isStored?: true;
  /** Null when the record has no payload. */
  payload: Buffer | null;
}

/** Returns the ids of the delivery and of its attempt. */
export function idsOf(
  { messageId, webhookId }: Pick<DeliveryRef, 'messageId' | 'webhookId'>,
  attemptNumber: number,
): Pick<DueAttempt, 'deliveryId' | 'attemptId'> {
  const deliveryId = deliveryIdOf(messageId, webhookId);
  return { deliveryId, attemptId: attemptIdOf(deliveryId, attemptNumber) };
}

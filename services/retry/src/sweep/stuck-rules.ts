import { endedAtMs, refOf } from '@posthorn/domain/message/delivery.ts';
import { TURN_AT_HEADER } from '@posthorn/domain/records/record-headers.ts';
import { encodeDeliveryFailed, encodeRetryDue } from '@posthorn/domain/records/records.ts';
import { deliveryIdOf } from '@posthorn/domain/ids/ids.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery-lifecycle/settlement.ts';
import type { Remedy, StuckDelivery } from '@posthorn/domain/delivery-lifecycle/stuck-delivery.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { CheckedMessage } from '@posthorn/platform/mongo/messages/message-checks.ts';
import type { WebhookState } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';

export interface RemedyTopics {
  retryDue: string;
  deliveryFailed: string;
}

/**
 * Gateways stamp the creation time by their own clocks, and the database removes by its own: close to
 * the end of the retention a delivery may be missing because it has expired.
 */
const EXPIRY_MARGIN_MS = 3_600_000;
/** Records that wait for their endpoint are not lost, and each copy would use a turn. */
const BACKLOGGED_AFTER_MS = 7 * 86_400_000;

/** A delivery that a message should have. */
export interface ExpectedDelivery {
  id: string;
  message: CheckedMessage;
  webhookId: string;
}

/** The deliveries that these messages should have. */
export function expectedDeliveries(messages: readonly CheckedMessage[]): ExpectedDelivery[] {
  return messages.flatMap((message) =>
    message.targets.map((webhookId) => ({
      id: deliveryIdOf(message.id, webhookId),
      message,
      webhookId,
    })),
  );
}

/** Whether a delivery that is not stored was lost, and has not expired. Times in milliseconds since 1970. */
export function isLost(
  { createdAtMs }: Pick<SettledDelivery, 'createdAtMs'>,
  nowMs: number,
  retentionMs: number,
): boolean {
  return createdAtMs > nowMs - retentionMs + EXPIRY_MARGIN_MS;
}

export interface SweepTime {
  /** Milliseconds since 1970. */
  nowMs: number;
  /** How long a delivery must be overdue, in milliseconds, to count as stuck. */
  afterMs: number;
}

/** Returns true for a webhook with a backlog: it has a rate limit, or was marked (mark-backlogs.ts) lately. */
export function hasBacklog(
  { hasRateLimit, deferredAtMs }: Pick<WebhookState, 'hasRateLimit' | 'deferredAtMs'>,
  { nowMs, afterMs }: SweepTime,
): boolean {
  return hasRateLimit || (deferredAtMs !== null && nowMs - deferredAtMs < afterMs);
}

/** Whether a stuck delivery is to be moved on now. `isBacklogged`: its webhook has a backlog. */
export function isToBeMoved(
  { createdAtMs }: Pick<StuckDelivery, 'createdAtMs'>,
  isBacklogged: boolean,
  nowMs: number,
): boolean {
  return !isBacklogged || nowMs - createdAtMs > BACKLOGGED_AFTER_MS;
}

/** The record that moves a stuck delivery on. */
export function remedyRecord(
  { retryDue, deliveryFailed }: RemedyTopics,
  delivery: StuckDelivery,
  remedy: Remedy,
  nowMs: number,
): OutgoingRecord {
  const ref = refOf(delivery);
  switch (remedy.kind) {
    case 'attempt': {
      const { attemptNumber, dueAtMs } = remedy;
      return {
        topic: retryDue,
        key: delivery.webhookId,
        // With the trigger of a retry even when it is the first: new messages go before lost ones.
        value: encodeRetryDue({ ...ref, attemptNumber, dueAtMs }),
        headers: { [TURN_AT_HEADER]: String(nowMs) },
      };
    }
    case 'failure': {
      const { attempt } = remedy;
      const { number: attemptNumber, outcome, statusCode } = attempt;
      const ended = { attemptNumber, endedAtMs: endedAtMs(attempt), outcome, statusCode };
      return {
        topic: deliveryFailed,
        key: delivery.webhookId,
        value: encodeDeliveryFailed({ ...ref, ...ended }),
      };
    }
  }
}

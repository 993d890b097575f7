import { endedAtMs } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import {
  encodeDeliveryFailed,
  encodeRetryDue,
  refOf,
  TURN_AT_HEADER,
} from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { SettledDelivery } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { CheckedMessage } from '@posthorn/platform/mongo/messages/message-checks.ts';
import type { StuckDelivery } from '@posthorn/platform/mongo/deliveries/stuck-deliveries.ts';

/** What stood still: a retry, the end of a schedule, or a message of which no attempt is recorded. */
export const FINDINGS = ['overdue_retry', 'unended_schedule', 'lost_message'] as const;

export type Finding = (typeof FINDINGS)[number];

export interface DriveTopics {
  retryDue: string;
  deliveryFailed: string;
}

/**
 * The deliveries of these messages as they are recorded where nothing is: without an attempt. From
 * there on a lost first attempt is found as an overdue one, so each message is checked only once.
 */
export function unattemptedDeliveries(
  messages: readonly CheckedMessage[],
  atMs: number,
): SettledDelivery[] {
  return messages.flatMap((message) =>
    message.targets.map((webhookId) => unattempted(message, webhookId, atMs)),
  );
}

function unattempted(
  { id: messageId, companyId, appId, createdAtMs, disabledTargets }: CheckedMessage,
  webhookId: string,
  updatedAtMs: number,
): SettledDelivery {
  const id = deliveryIdOf(messageId, webhookId);
  const ref = { id, messageId, webhookId, companyId, appId, createdAtMs };
  const common = { ...ref, updatedAtMs, attempt: null };
  return disabledTargets.includes(webhookId)
    ? { ...common, status: 'cancelled', reason: 'webhook_disabled', nextAttemptAtMs: null }
    : { ...common, status: 'pending', reason: null, nextAttemptAtMs: createdAtMs };
}

export function findingOf({ attemptCount, nextAttemptAtMs }: StuckDelivery): Finding {
  if (attemptCount === 0) return 'lost_message';
  return nextAttemptAtMs === null ? 'unended_schedule' : 'overdue_retry';
}

/** The record that drives the delivery on from where its document says that it stands. */
export function drivingRecord(
  { retryDue, deliveryFailed }: DriveTopics,
  delivery: StuckDelivery,
  nowMs: number,
): OutgoingRecord {
  const { webhookId: key, attemptCount, nextAttemptAtMs, createdAtMs } = delivery;
  const last = delivery.attempts.at(-1);
  if (last && nextAttemptAtMs === null) {
    const { number: attemptNumber, outcome, statusCode } = last;
    const ended = { attemptNumber, endedAtMs: endedAtMs(last), outcome, statusCode };
    return {
      topic: deliveryFailed,
      key,
      value: encodeDeliveryFailed({ ...refOf(delivery), ...ended }),
    };
  }
  const dueAtMs = nextAttemptAtMs ?? createdAtMs;
  return {
    topic: retryDue,
    key,
    // As a retry also when it is the first: what was lost must not stand in the way of what is new.
    value: encodeRetryDue({ ...refOf(delivery), attemptNumber: attemptCount + 1, dueAtMs }),
    headers: { [TURN_AT_HEADER]: String(nowMs) },
  };
}

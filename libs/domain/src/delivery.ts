import type { Outcome } from './outcome.ts';
import { delayAfterAttempt, type RetrySchedule } from './schedule/retry-schedule.ts';
import type { Header } from './webhook.ts';

export type DeliveryStatus = 'pending' | 'delivered' | 'exhausted' | 'cancelled';

/** Why an attempt was made. */
export const TRIGGERS = ['first', 'retry', 'resend', 'test'] as const;

export type Trigger = (typeof TRIGGERS)[number];

/** Why a delivery was cancelled; the last one when its message is not stored any more. */
export const CANCEL_REASONS = ['webhook_deleted', 'webhook_disabled', 'message_missing'] as const;

export type CancelReason = (typeof CANCEL_REASONS)[number];

export interface Attempt {
  id: string;
  /** From 1. */
  number: number;
  trigger: Trigger;
  outcome: Outcome;
  /** Null when no status arrived in time. */
  statusCode: number | null;
  /** The first 4 KiB of the answer, as text; null when there was none. */
  response: string | null;
  responseHeaders: Header[];
  startedAtMs: number;
  durationMs: number;
}

/** One message on its way to one webhook. */
export interface Delivery {
  id: string;
  messageId: string;
  webhookId: string;
  companyId: string;
  appId: string | null;
  status: DeliveryStatus;
  reason: CancelReason | null;
  /** Number of the last attempt. */
  attemptCount: number;
  attempts: Attempt[];
  nextAttemptAtMs: number | null;
  createdAtMs: number;
  updatedAtMs: number;
}

export function isFinal(status: DeliveryStatus): boolean {
  return status !== 'pending';
}

/** When the attempt was over; the delay of the next one counts from here. */
export function endedAtMs(attempt: Attempt): number {
  return attempt.startedAtMs + attempt.durationMs;
}

/** What recording an attempt makes of its delivery. */
export interface Settlement {
  status: 'delivered' | 'pending';
  /** When the next attempt is due; null when delivered or when this was the last of the schedule. */
  nextAttemptAtMs: number | null;
}

/**
 * A failure leaves the delivery pending, also the last one: the retry service alone ends a
 * schedule, so that `exhausted` and its dead letter come from one place.
 */
export function settle(attempt: Attempt, schedule: RetrySchedule): Settlement {
  if (attempt.outcome === 'success') return { status: 'delivered', nextAttemptAtMs: null };
  const delayMs = delayAfterAttempt(schedule, attempt.number);
  return {
    status: 'pending',
    nextAttemptAtMs: delayMs === null ? null : endedAtMs(attempt) + delayMs,
  };
}

/** True when attempt `attemptNumber` of this delivery is still to be made. */
export function awaitsAttempt(
  delivery: { status: DeliveryStatus; attemptCount: number } | undefined,
  attemptNumber: number,
): boolean {
  if (!delivery) return true;
  return delivery.status === 'pending' && delivery.attemptCount < attemptNumber;
}

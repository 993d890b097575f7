import {
  type InOrder,
  type Lifetime,
  lifetimeOf,
  type NotStored,
  notStoredOf,
  orderOf,
} from '../message.ts';
import type { Header } from '../webhook.ts';
import type { Waiting } from '../waiting.ts';

/**
 * Only `pending` changes by itself. The other statuses change only by a success: of a resend, or of an attempt that
 * was under way.
 */
export const STATUSES = ['pending', 'delivered', 'exhausted', 'cancelled'] as const;
export type DeliveryStatus = (typeof STATUSES)[number];

/** The reason for an attempt. */
export const TRIGGERS = ['first', 'retry', 'resend', 'test'] as const;

export type Trigger = (typeof TRIGGERS)[number];

/**
 * The reasons to cancel a delivery. `message_missing`: its message is no longer stored. `expired_while_waiting`: it still
 * waited one day before it would have expired.
 */
export const CANCEL_REASONS = [
  'webhook_deleted',
  'webhook_disabled',
  'message_missing',
  'cancelled_by_client',
  'payload_erased',
  'expired_while_waiting',
  'expired',
] as const;

export type CancelReason = (typeof CANCEL_REASONS)[number];

/**
 * The reasons to exhaust a delivery before all of its attempts were made (docs/contract.md C10.11). Which of them applies
 * is decided in ending.ts.
 */
export const EXHAUST_REASONS = ['gone', 'not_retryable', 'aborted'] as const;

export type ExhaustReason = (typeof EXHAUST_REASONS)[number];

/**
 * Why a failed attempt is the last one of its delivery, although the schedule has more. `max_attempts`: its webhook allows
 * no more attempts; such a delivery is exhausted without a reason, as at the end of the schedule.
 */
export const ENDINGS = [...EXHAUST_REASONS, 'max_attempts'] as const;

export type Ending = (typeof ENDINGS)[number];

export interface Attempt {
  id: string;
  /** Attempts are numbered from 1. */
  number: number;
  trigger: Trigger;
  outcome: Outcome;
  /** The reason why there was no access token; only with `token_failed`. */
  failureReason?: string;
  /** Null when no status arrived in time. */
  statusCode: number | null;
  /** The first 4 KiB of the response body, as text; null when there was none. */
  response: string | null;
  responseHeaders: Header[];
  /** Milliseconds since 1970. */
  startedAtMs: number;
  durationMs: number;
  /** Decided by the webhook as it was for this attempt; absent while the schedule decides. */
  ending?: Ending;
}

/** A message, its target and their owner. Every record of a delivery carries it. */
export interface DeliveryRef extends NotStored, Lifetime, InOrder {
  messageId: string;
  webhookId: string;
  companyId: string;
  /** Null when the message was addressed to one webhook. */
  appId: string | null;
  /**
   * When the message was created, in milliseconds since 1970; of a webhook that got the message by a replay, when that
   * was.
   */
  createdAtMs: number;
}

/** One message on its way to one webhook. Times are in milliseconds since 1970. */
export interface Delivery extends DeliveryRef {
  id: string;
  status: DeliveryStatus;
  /** Null unless it is cancelled, or was exhausted before all of its attempts were made. */
  reason: CancelReason | ExhaustReason | null;
  /** Number of the last attempt. */
  attemptCount: number;
  attempts: Attempt[];
  /** Null when no attempt is planned. */
  nextAttemptAtMs: number | null;
  /** Why it waits without a record in Kafka; null while it does not. */
  waiting: Waiting | null;
  waitingSinceMs: number | null;
  updatedAtMs: number;
}

/** The state of a delivery, which a step checks before it acts. */
export type DeliveryState = Pick<Delivery, 'status' | 'attemptCount'>;

/** A recorded delivery with its newest attempt; null without attempts. */
export interface RecordedDelivery extends DeliveryState {
  lastAttempt: Attempt | null;
}

/** The end of a pending delivery without a further attempt. */
export interface Cancellation {
  /** The delivery's id. */
  id: string;
  reason: CancelReason;
  /** Milliseconds since 1970. */
  atMs: number;
}

export function isFinal(status: DeliveryStatus): boolean {
  return status !== 'pending';
}

/** `no_target`: the message went to no webhook. */
export const MESSAGE_STATUSES = [...STATUSES, 'no_target'] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

/** The status of a message is that of its least finished delivery. */
export function messageStatus(deliveries: readonly DeliveryStatus[]): MessageStatus {
  if (deliveries.length === 0) return 'no_target';
  if (deliveries.includes('pending')) return 'pending';
  if (deliveries.includes('exhausted')) return 'exhausted';
  if (deliveries.includes('cancelled')) return 'cancelled';
  return 'delivered';
}

/** Returns the attempt for an app that does not store responses. */
export function withoutResponse(attempt: Attempt): Attempt {
  return { ...attempt, response: null, responseHeaders: [] };
}

/** Returns the end of the attempt, in milliseconds since 1970. The delay of the next attempt counts from it. */
export function endedAtMs({
  startedAtMs,
  durationMs,
}: Pick<Attempt, 'startedAtMs' | 'durationMs'>): number {
  return startedAtMs + durationMs;
}

/** Whether attempt `attemptNumber` has yet to be made. A delivery without a document has no attempts. */
export function awaitsAttempt(delivery: DeliveryState | undefined, attemptNumber: number): boolean {
  if (!delivery) return true;
  return delivery.status === 'pending' && delivery.attemptCount < attemptNumber;
}

/** Returns the reference without the other fields of `source`. */
export function refOf(source: DeliveryRef): DeliveryRef {
  const { messageId, webhookId, companyId, appId, createdAtMs } = source;
  const ref = { messageId, webhookId, companyId, appId, createdAtMs };
  return { ...ref, ...notStoredOf(source), ...lifetimeOf(source), ...orderOf(source) };
}

/** The outcomes of attempts. They are labels of metrics, so the list is closed. */
export const OUTCOMES = [
  'success',
  'http_3xx',
  'http_4xx',
  'http_429',
  'http_5xx',
  'timeout',
  'dns_error',
  'connect_error',
  'tls_error',
  'egress_blocked',
  'response_too_large',
  'aborted',
  // No access token: nothing was sent to the endpoint.
  'token_failed',
] as const;

export type Outcome = (typeof OUTCOMES)[number];

/** Only a status from 200 to 299 is a successful delivery (docs/contract.md C10.2). */
export function outcomeOfStatus(statusCode: number): Outcome {
  if (statusCode >= 200 && statusCode <= 299) return 'success';
  if (statusCode === 429) return 'http_429';
  if (statusCode >= 500) return 'http_5xx';
  if (statusCode >= 400) return 'http_4xx';
  return 'http_3xx';
}

const BY_CODE: Readonly<Record<string, Outcome>> = {
  EGRESS_BLOCKED: 'egress_blocked',
  ATTEMPT_TIMEOUT: 'timeout',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_OVERFLOW: 'response_too_large',
  HPE_HEADER_OVERFLOW: 'response_too_large',
  RESPONSE_HEAD_TOO_LARGE: 'response_too_large',
  LOOKUP_FAILED: 'dns_error',
  ENOTFOUND: 'dns_error',
  EAI_AGAIN: 'dns_error',
  EAI_FAIL: 'dns_error',
  ENODATA: 'dns_error',
  EPROTO: 'tls_error',
};

/**
 * Returns the outcome of an attempt without a status by the `code` of its error (of Node, OpenSSL, undici or
 * Posthorn).
 */
export function outcomeOfErrorCode(code: string): Outcome {
  const known = BY_CODE[code];
  if (known) return known;
  return TLS_CODE.test(code) ? 'tls_error' : 'connect_error';
}

const TLS_CODE =
  /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/;

import type { DeliveryStatus } from './delivery.ts';

/** An accepted payload and where it goes. Stored once, never changed. */
export interface Message {
  id: string;
  companyId: string;
  /** Null when it was addressed to one webhook. */
  appId: string | null;
  /** The text of `payload` exactly as the client wrote it. */
  payload: string;
  /** Webhook ids, oldest first. */
  targets: string[];
  /** The gateway process that stored it and answers for its publication. */
  publisherId: string;
  eventType: string | null;
  /** Those of the targets that were disabled when it was accepted. */
  disabledTargets: string[];
  /** Null when the client sent no key. */
  idempotency: Idempotency | null;
  /** Sent to try a webhook out; its first attempt is counted apart. */
  isTest?: true;
  requestId: string;
  /** W3C Trace Context, as the client sent it with the message. */
  traceparent?: string;
  createdAtMs: number;
}

/** What makes the repeat of a request recognisable; it lives with the message that the first one made. */
export interface Idempotency {
  /** As the client wrote it; unique within the company for 24 hours. */
  key: string;
  /** SHA-256 of the request's body, hex. */
  bodyHash: string;
  /** The first answer, sealed. */
  answer: string;
}

/** Limits of a message: the HTTP body in bytes, the payload's nesting in levels. */
export const MAX_BODY_BYTES = 262_144;
export const MAX_PAYLOAD_DEPTH = 64;

/** A message is as unfinished as its least finished delivery. */
export function messageStatus(deliveries: readonly DeliveryStatus[]): DeliveryStatus {
  if (deliveries.includes('pending')) return 'pending';
  if (deliveries.includes('exhausted')) return 'exhausted';
  if (deliveries.includes('cancelled')) return 'cancelled';
  return 'delivered';
}

/** A delivery without a document: cancelled at once when its webhook was disabled. */
export function statusBeforeAttempts(
  { disabledTargets }: Pick<Message, 'disabledTargets'>,
  webhookId: string,
): 'pending' | 'cancelled' {
  return disabledTargets.includes(webhookId) ? 'cancelled' : 'pending';
}

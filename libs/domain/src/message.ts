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
  requestId: string;
  createdAtMs: number;
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

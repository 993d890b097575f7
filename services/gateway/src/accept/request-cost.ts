import { MS_PER_RECORD } from '../outbox/publish-pace.ts';
import { MS_PER_CANCELLATION } from './cancel-disabled-deliveries.ts';
import type { ResolvedRequest } from './build-message.ts';

const IDS_PER_UNIT = 100;
const CHARS_PER_UNIT = 16_384;

/**
 * Returns the share of a batch, and of its company's turns, that a request takes. An ordinary request
 * costs 1; each 100 ids that are stored with it and each 16 KiB of payload cost 1 more. So a batch of
 * 200 holds 200 ordinary messages, two to 10,000 webhooks each, one to 10,000 disabled ones, whose ids are stored twice,
 * or 12 of 256 KiB: about 3 MiB. To encode 20,000 ids takes 3 ms.
 */
export function batchCostOf({ request, targets, disabledTargets }: ResolvedRequest): number {
  const forIds = Math.floor((targets.length + disabledTargets.size) / IDS_PER_UNIT);
  return 1 + forIds + Math.floor(request.payload.length / CHARS_PER_UNIT);
}

const WIDE_WEBHOOKS = 100;

/**
 * Returns how long a message to many webhooks keeps the process busy, in milliseconds; 0 for any other one. One to 10,000
 * webhooks is a quarter of a second, and half of one when they are disabled.
 */
export function fanOutMsOf({ targets, disabledTargets }: ResolvedRequest): number {
  if (targets.length < WIDE_WEBHOOKS) return 0;
  return targets.length * MS_PER_RECORD + disabledTargets.size * MS_PER_CANCELLATION;
}

/** Request, response, promises and ids. */
const REQUEST_BYTES = 4_096;
/** The parsed text, and what the driver writes. The body itself is counted where it is read. */
const PAYLOAD_COPIES = 2;
/** The id in the message, and the delivery in the response, as an object and as text. */
const WEBHOOK_BYTES = 300;

/** Estimates the bytes that a request holds in memory until it is answered. */
export function memoryBytesOf({ request, targets }: ResolvedRequest): number {
  return memoryBytesOfBody(request.payload.length) + targets.length * WEBHOOK_BYTES;
}

/** What such a request holds without its targets, from the length of its body or payload. */
export function memoryBytesOfBody(length: number): number {
  return REQUEST_BYTES + length * PAYLOAD_COPIES;
}

import type { Arrived } from './form-message.ts';

const WEBHOOKS_AS_ONE = 100;
const CHARS_AS_ONE = 16_384;

/**
 * What a request takes of its batch and of its company's turns. An ordinary one costs 1; a hundred
 * webhooks or 16 KiB of payload cost as much again. So a batch holds 200 ordinary messages, two to
 * 10,000 webhooks each, or 12 of 256 KiB: about 3 MiB.
 */
export function costOf({ request, webhooks }: Arrived): number {
  const byWebhooks = Math.floor(webhooks.length / WEBHOOKS_AS_ONE);
  return 1 + byWebhooks + Math.floor(request.payload.length / CHARS_AS_ONE);
}

/** Request, response, promises and ids. */
const REQUEST_BYTES = 4_096;
/** The text that was read and what the driver writes; the body itself is counted where it is read. */
const PAYLOAD_COPIES = 2;
/** Its id in the message, and its delivery in the answer, as an object and as text. */
const WEBHOOK_BYTES = 300;

/** What a request holds in memory until it is answered: an estimate. */
export function bytesOf({ request, webhooks }: Arrived): number {
  return REQUEST_BYTES + request.payload.length * PAYLOAD_COPIES + webhooks.length * WEBHOOK_BYTES;
}

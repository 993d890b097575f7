import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';

/** The key, the list and their place in the cache. */
const ENTRY_BYTES = 400;
/** Four ids, the secret, the times and the objects themselves. */
const WEBHOOK_BYTES = 700;
/** An object with two texts, or a text in a list, besides its characters. */
const PART_BYTES = 80;

/** Estimates the bytes that the webhooks of one look-up hold in the cache. */
export function estimatedBytesOf(found: readonly FoundWebhook[]): number {
  return found.reduce((sum, webhook) => sum + bytesOfWebhook(webhook), ENTRY_BYTES);
}

/** A webhook whose secrets do not open counts the base only: its error is about as large. */
function bytesOfWebhook(webhook: FoundWebhook): number {
  const eventTypes = bytesOfTexts(webhook.eventTypes);
  if ('problem' in webhook) return WEBHOOK_BYTES + eventTypes;
  const { name, url, customHeaders } = webhook;
  const headers = bytesOfTexts(customHeaders.flatMap(({ key, value }) => [key, value]));
  return WEBHOOK_BYTES + name.length + url.length + headers + eventTypes;
}

function bytesOfTexts(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + PART_BYTES + text.length, 0);
}

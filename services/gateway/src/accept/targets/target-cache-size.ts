import { charsOfAuth } from '@posthorn/domain/webhook.ts';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { LoadedTargets } from './load-targets.ts';

/** The key, the list and their place in the cache. */
const ENTRY_BYTES = 400;
/** Four ids, the secret, the times and the objects themselves. */
const WEBHOOK_BYTES = 700;
/** An object with two texts, or a text in a list, besides its characters. */
const PART_BYTES = 80;
/** An id in a list. */
const TARGET_BYTES = 70;
/** An id in a set, beside the list. */
const DISABLED_BYTES = 50;

/** Estimates the bytes that the result of one look-up holds in the cache. */
export function estimatedBytesOf(loaded: LoadedTargets): number {
  switch (loaded.kind) {
    case 'wide':
      return ENTRY_BYTES;
    case 'webhooks':
      return loaded.webhooks.reduce((sum, each) => sum + bytesOfWebhook(each), ENTRY_BYTES);
    case 'targets': {
      const { targets, disabledTargets, oldest } = loaded.list;
      const ids = targets.length * TARGET_BYTES + disabledTargets.size * DISABLED_BYTES;
      return ENTRY_BYTES + ids + (oldest ? bytesOfWebhook(oldest) : 0);
    }
  }
}

/** A webhook whose secrets do not open counts the base only: its error is about as large. */
function bytesOfWebhook(webhook: FoundWebhook): number {
  const eventTypes = bytesOfTexts(webhook.eventTypes);
  if (webhook.kind === 'unopened') return WEBHOOK_BYTES + eventTypes;
  const { name, url, customHeaders, authMethod } = webhook;
  const headers = bytesOfTexts(customHeaders.flatMap(({ key, value }) => [key, value]));
  const auth = charsOfAuth(authMethod);
  return WEBHOOK_BYTES + name.length + url.length + auth + headers + eventTypes;
}

function bytesOfTexts(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + PART_BYTES + text.length, 0);
}

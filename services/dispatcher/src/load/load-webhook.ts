import { signerOf, type Signer } from '@posthorn/domain/request/delivery-headers.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type {
  FoundWebhook as StoredWebhook,
  UnopenedWebhook,
  WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';

/** A webhook with what all its deliveries need and what is derived from it only once. */
export interface LoadedWebhook {
  kind: 'opened';
  webhook: Webhook;
  signer: Signer;
  origin: string;
  /** Path and query. */
  path: string;
}

/** A stored webhook, whether or not its secrets could be opened. */
export type FoundWebhook = LoadedWebhook | UnopenedWebhook;

/** Resolves with null when the webhook was deleted. */
export type LoadWebhook = (webhookId: string) => Promise<FoundWebhook | null>;

export interface WebhookLoader {
  load: LoadWebhook;
  forget: (webhookId: string) => void;
  forgetAll: () => void;
  /** Bytes that the cache holds. */
  usedBytes: () => number;
}

/** A change of a webhook takes effect at once through Redis, and within this time without it. */
const CACHED_MS = 2_000;
/** Size of an entry without its texts: objects, keys, the signer. */
const ENTRY_BYTES = 1_536;

export function createWebhookLoader(
  webhooks: Pick<WebhookStore, 'findMany'>,
  logger: Pick<Logger, 'error'>,
  cacheBytes: number,
  keepTrying: KeepTrying,
): WebhookLoader {
  const batch = createBatcher<string, StoredWebhook | undefined>({
    maxItems: 500,
    lingerMs: 1,
    maxInFlight: 2,
    run: async (ids) => {
      const found = await keepTrying('load webhooks', () => webhooks.findMany([...new Set(ids)]));
      const byId = new Map(found.map((webhook) => [webhook.id, webhook]));
      return ids.map((id) => byId.get(id));
    },
  });
  const cache = createCoalescingCache<FoundWebhook>({
    maxSize: cacheBytes,
    sizeOf: bytesOf,
    ttlMs: CACHED_MS,
  });
  const load: LoadWebhook = async (id) => {
    const webhook = await batch.add(id);
    if (!webhook) return null;
    if (webhook.kind === 'opened') return prepare(webhook);
    const { keyId, message } = webhook.problem;
    logger.error({ webhookId: id, keyId, reason: message }, 'webhook cannot be opened');
    return webhook;
  };
  return {
    load: (id) => cache.get(id, () => load(id)),
    forget: cache.forget,
    forgetAll: cache.forgetAll,
    usedBytes: cache.usedSize,
  };
}

function bytesOf(found: FoundWebhook): number {
  if (found.kind === 'unopened') return ENTRY_BYTES;
  const { url, name, customHeaders, eventTypes } = found.webhook;
  const headerChars = customHeaders.reduce(
    (sum, { key, value }) => sum + key.length + value.length,
    0,
  );
  const eventChars = eventTypes.reduce((sum, eventType) => sum + eventType.length, 0);
  return ENTRY_BYTES + 2 * url.length + name.length + headerChars + eventChars;
}

function prepare(webhook: Webhook): LoadedWebhook {
  const { origin, pathname, search } = new URL(webhook.url);
  return { kind: 'opened', webhook, signer: signerOf(webhook), origin, path: pathname + search };
}

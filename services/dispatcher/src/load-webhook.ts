import { signerOf, type Signer } from '@posthorn/domain/delivery-headers.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { createBatcher } from '@posthorn/platform/batcher.ts';
import { createCoalescingCache } from '@posthorn/platform/coalescing-cache.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks.ts';

/** A webhook with what every delivery to it needs and that is made only once. */
export interface LoadedWebhook {
  webhook: Webhook;
  signer: Signer;
  origin: string;
  /** Path and query. */
  path: string;
}

/** Null when the webhook was deleted. */
export type LoadWebhook = (webhookId: string) => Promise<LoadedWebhook | null>;

export interface WebhookLoader {
  load: LoadWebhook;
  forget: (webhookId: string) => void;
  forgetAll: () => void;
}

/** A changed webhook takes effect at once through Redis, and within this time without it. */
const REMEMBER_MS = 2_000;
const MAX_REMEMBERED = 50_000;

export function createWebhookLoader(webhooks: Pick<WebhookStore, 'findMany'>): WebhookLoader {
  const batch = createBatcher<string, Webhook | undefined>({
    maxItems: 500,
    lingerMs: 1,
    maxInFlight: 2,
    run: async (ids) => {
      const found = await keepTrying(() => webhooks.findMany([...new Set(ids)]));
      const byId = new Map(found.map((webhook) => [webhook.id, webhook]));
      return ids.map((id) => byId.get(id));
    },
  });
  const cache = createCoalescingCache<LoadedWebhook>({
    maxSize: MAX_REMEMBERED,
    sizeOf: () => 1,
    ttlMs: REMEMBER_MS,
  });
  const load = async (id: string): Promise<LoadedWebhook | null> => {
    const webhook = await batch.add(id);
    return webhook ? prepare(webhook) : null;
  };
  return {
    load: (id) => cache.get(id, () => load(id)),
    forget: cache.forget,
    forgetAll: cache.forgetAll,
  };
}

function prepare(webhook: Webhook): LoadedWebhook {
  const { origin, pathname, search } = new URL(webhook.url);
  return { webhook, signer: signerOf(webhook), origin, path: pathname + search };
}

import { wantsEvent } from '@posthorn/domain/webhook.ts';
import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import type { FoundWebhook, WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { EVERYTHING, type Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import { estimatedBytesOf } from './target-cache-size.ts';

/** Where a message is addressed to: every webhook of an app that wants its event type, or one webhook. */
export type Address =
  { kind: 'app'; appId: string; eventType: string | null } | { kind: 'webhook'; webhookId: string };

export interface TargetResolver {
  /**
   * Returns the webhooks, oldest first, including those whose secrets cannot be decrypted: the
   * dispatcher records why nothing was sent. Null when the app or webhook does not exist or belongs
   * to another company.
   */
  resolve: (companyId: string, address: Address) => Promise<FoundWebhook[] | null>;
  /** Drops what is cached of an app or webhook. */
  forget: (invalidation: Invalidation) => void;
  forgetAll: () => void;
  /** What the cache holds, in bytes, by estimate. */
  usedBytes: () => number;
}

/** How long a result may be stale when an invalidation is lost (docs/decisions/0003-caches.md). */
const CACHE_TTL_MS = 2_000;

export interface TargetDeps {
  /** What the cache may hold, in bytes. */
  cacheBytes: number;
  webhooks: Pick<WebhookStore, 'findTarget' | 'findByApp'>;
  hasApp: (companyId: string, appId: string) => Promise<boolean>;
}

export function createTargetResolver({ cacheBytes, webhooks, hasApp }: TargetDeps): TargetResolver {
  async function load(companyId: string, address: Address): Promise<FoundWebhook[] | null> {
    if (address.kind === 'webhook') {
      const webhook = await webhooks.findTarget(companyId, address.webhookId);
      return webhook && [webhook];
    }
    const { appId } = address;
    // The app is checked itself: the webhooks of a deleted app are removed after the response.
    const [exists, found] = await Promise.all([
      hasApp(companyId, appId),
      webhooks.findByApp(companyId, appId),
    ]);
    return exists ? found : null;
  }

  const cache = createCoalescingCache<FoundWebhook[]>({
    maxSize: cacheBytes,
    sizeOf: estimatedBytesOf,
    ttlMs: CACHE_TTL_MS,
  });

  return {
    async resolve(companyId, address) {
      const key = `${companyId}/${idOf(address)}`;
      const found = await cache.get(key, () => load(companyId, address));
      if (!found || address.kind === 'webhook') return found;
      return found.filter((webhook) => wantsEvent(webhook, address.eventType));
    },
    forget({ companyId, id }) {
      if (id === EVERYTHING) cache.forgetAll();
      cache.forget(`${companyId}/${id}`);
    },
    forgetAll: cache.forgetAll,
    usedBytes: cache.usedSize,
  };
}

function idOf(address: Address): string {
  return address.kind === 'app' ? address.appId : address.webhookId;
}

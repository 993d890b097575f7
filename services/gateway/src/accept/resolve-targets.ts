import { wantsEvent } from '@posthorn/domain/webhook.ts';
import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import type { FoundWebhook, WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { EVERYTHING, type Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import { bytesOfTargets } from './weigh-targets.ts';

/** Whom a message is addressed to: every webhook of an app that wants it, or one webhook. */
export type Address =
  { kind: 'app'; appId: string; eventType: string | null } | { kind: 'webhook'; webhookId: string };

export interface TargetResolver {
  /**
   * The webhooks, oldest first, also those whose secrets do not open: the dispatcher records why
   * nothing was sent. Null when the app or webhook is not there or not this company's.
   */
  resolve: (companyId: string, address: Address) => Promise<FoundWebhook[] | null>;
  forget: (invalidation: Invalidation) => void;
  forgetAll: () => void;
  /** What is remembered, in bytes, by estimate. */
  usedBytes: () => number;
}

/** Upper bound of a stale answer when an invalidation is lost (docs/decisions/0003-caches.md). */
const REMEMBER_MS = 2_000;

export interface TargetDeps {
  /** What may be remembered, in bytes. */
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
    // The app itself is asked for: the webhooks of a deleted one are removed behind the answer.
    const [isThere, found] = await Promise.all([
      hasApp(companyId, appId),
      webhooks.findByApp(companyId, appId),
    ]);
    return isThere ? found : null;
  }

  const cache = createCoalescingCache<FoundWebhook[]>({
    maxSize: cacheBytes,
    sizeOf: bytesOfTargets,
    ttlMs: REMEMBER_MS,
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

import { createCoalescingCache } from '@posthorn/platform/coalescing-cache.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';

/** Whom a message is addressed to: every webhook of an app, or one webhook. */
export type Address = { kind: 'app'; appId: string } | { kind: 'webhook'; webhookId: string };

export interface TargetResolver {
  /** The webhooks, oldest first; null when the app or webhook is not there or not this company's. */
  resolve: (companyId: string, address: Address) => Promise<WebhookDocument[] | null>;
  forget: (invalidation: Invalidation) => void;
  forgetAll: () => void;
}

/** Upper bound of a stale answer when an invalidation is lost (docs/decisions/0003-caches.md). */
const REMEMBER_MS = 2_000;
/** Webhooks, over all apps. */
const MAX_REMEMBERED = 50_000;

export function createTargetResolver(db: mongo.Db, webhooks: WebhookStore): TargetResolver {
  const apps = collection(db, 'apps');

  async function load(companyId: string, address: Address): Promise<WebhookDocument[] | null> {
    if (address.kind === 'webhook') {
      const webhook = await webhooks.findOne(companyId, address.webhookId);
      return webhook && [webhook];
    }
    const found = await webhooks.findByApp(companyId, address.appId);
    if (found.length > 0) return found;
    const app = await apps.findOne({ _id: address.appId, companyId }, { projection: { _id: 1 } });
    return app && [];
  }

  const cache = createCoalescingCache<WebhookDocument[]>({
    maxSize: MAX_REMEMBERED,
    sizeOf: (found) => found.length + 1,
    ttlMs: REMEMBER_MS,
  });

  return {
    resolve: (companyId, address) =>
      cache.get(`${companyId}/${idOf(address)}`, () => load(companyId, address)),
    forget({ companyId, id }) {
      cache.forget(`${companyId}/${id}`);
    },
    forgetAll: cache.forgetAll,
  };
}

function idOf(address: Address): string {
  return address.kind === 'app' ? address.appId : address.webhookId;
}

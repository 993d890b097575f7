import { collection } from '@posthorn/platform/mongo/collections.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import { LRUCache } from 'lru-cache';
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
const MAX_REMEMBERED = 20_000;

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

  const cache = new LRUCache<string, WebhookDocument[], { companyId: string; address: Address }>({
    max: MAX_REMEMBERED,
    ttl: REMEMBER_MS,
    // Concurrent requests for one address share one look-up; a forgotten one still answers them.
    ignoreFetchAbort: true,
    fetchMethod: async (_key, _stale, { context }) =>
      (await load(context.companyId, context.address)) ?? undefined,
  });

  return {
    async resolve(companyId, address) {
      const key = `${companyId}/${idOf(address)}`;
      return (await cache.fetch(key, { context: { companyId, address } })) ?? null;
    },
    forget({ companyId, id }) {
      cache.delete(`${companyId}/${id}`);
    },
    forgetAll: () => {
      cache.clear();
    },
  };
}

function idOf(address: Address): string {
  return address.kind === 'app' ? address.appId : address.webhookId;
}

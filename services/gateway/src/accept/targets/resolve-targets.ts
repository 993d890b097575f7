import type { NotStored } from '@posthorn/domain/message/not-stored.ts';
import { wantsEvent } from '@posthorn/domain/webhook.ts';
import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import {
  targetListOf,
  type FoundWebhook,
  type TargetList,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import { quotaExceeded } from '../../limits/quotas.ts';
import { createLoadTargets, type LoadedTargets, type LoadTargetsDeps } from './load-targets.ts';
import { estimatedBytesOf } from './target-cache-size.ts';

/** Where a message is addressed to: every webhook of an app that wants its event type, or one webhook. */
export type Address =
  { kind: 'app'; appId: string; eventType: string | null } | { kind: 'webhook'; webhookId: string };

/** The webhooks of a message, and what is not stored of it. */
export interface ResolvedTargets extends TargetList {
  notStored?: NotStored;
}

export interface TargetResolver {
  /**
   * Returns the webhooks, oldest first, including those whose secrets cannot be decrypted: the
   * dispatcher records why nothing was sent. Null when the app or webhook does not exist or belongs
   * to another company. Throws ApiError 409 when there are more than a message may have.
   */
  resolve: (companyId: string, address: Address) => Promise<ResolvedTargets | null>;
  /** Drops what is cached of an app or webhook. */
  forget: (invalidation: Invalidation) => void;
  forgetAll: () => void;
  /** What the cache holds, in bytes, by estimate. */
  usedBytes: () => number;
}

/** How long a result may be stale when an invalidation is lost (docs/decisions/0003-caches.md). */
const CACHE_TTL_MS = 2_000;
export interface TargetDeps extends LoadTargetsDeps {
  /** What the cache may hold, in bytes. */
  cacheBytes: number;
}

export function createTargetResolver(deps: TargetDeps): TargetResolver {
  const load = createLoadTargets(deps);
  const cache = createCoalescingCache<LoadedTargets>({
    maxSize: deps.cacheBytes,
    sizeOf: estimatedBytesOf,
    ttlMs: CACHE_TTL_MS,
  });

  async function listFor(companyId: string, address: Address): Promise<ResolvedTargets | null> {
    const key = `${companyId}/${idOf(address)}`;
    if (address.kind === 'webhook') {
      const found = await cache.get(key, () => load.ofWebhook(companyId, address.webhookId));
      return found?.kind === 'webhooks' ? listOf(found.webhooks, found.notStored) : null;
    }
    const { appId, eventType } = address;
    const found = await cache.get(key, () => load.ofApp(companyId, appId));
    if (found?.kind === 'webhooks') {
      const wanting = found.webhooks.filter((each) => wantsEvent(each, eventType));
      return listOf(wanting, found.notStored);
    }
    if (found?.kind !== 'wide') return null;
    // Each change of the app gives it another number, so `forget` need not know the event types.
    const wideKey = `${key}/${found.number}/${eventType ?? ''}`;
    const wide = await cache.get(wideKey, () => load.ofWideApp(companyId, { appId, eventType }));
    return wide?.kind === 'targets' ? { ...wide.list, notStored: found.notStored } : null;
  }

  return {
    async resolve(companyId, address) {
      const list = await listFor(companyId, address);
      if (list && list.targets.length > deps.maxTargets) {
        throw quotaExceeded('QUOTA_TARGETS_PER_MESSAGE', deps.maxTargets);
      }
      return list;
    },
    forget({ companyId, id }) {
      cache.forget(`${companyId}/${id}`);
    },
    forgetAll: cache.forgetAll,
    usedBytes: cache.usedSize,
  };
}

function idOf(address: Address): string {
  return address.kind === 'app' ? address.appId : address.webhookId;
}

function listOf(webhooks: readonly FoundWebhook[], notStored: NotStored): ResolvedTargets {
  return { ...targetListOf(webhooks, webhooks[0] ?? null), notStored };
}

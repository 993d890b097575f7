import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import {
  createWebhookStore,
  type WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { connectRedis } from '@posthorn/platform/redis/connect.ts';
import {
  announce,
  listenForInvalidations,
  type Invalidation,
} from '@posthorn/platform/redis/invalidations.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { createVault } from '@posthorn/platform/vault/vault.ts';
import type { Redis } from 'ioredis';
import type { mongo } from 'mongoose';
import { bytesOfMib, type GatewayConfig } from './config.ts';
import { createKeptAnswers, type KeptAnswers } from './accept/sealed-answers.ts';
import { createTargetResolver, type TargetResolver } from './accept/resolve-targets.ts';

export interface Caches {
  webhooks: WebhookStore;
  hasApp: (companyId: string, appId: string) => Promise<boolean>;
  targets: TargetResolver;
  answers: KeptAnswers;
  /** Calls this too when something has changed, here or elsewhere. */
  alsoForget: (forget: (id: string) => void) => void;
  /** Forgets here at once, and elsewhere through Redis. */
  invalidate: (invalidation: Invalidation) => Promise<void>;
  redis: Redis;
  isRedisUp: () => boolean;
}

function hasAppIn(db: mongo.Db): Caches['hasApp'] {
  return async (companyId, _id) =>
    (await documentsOf(db, 'apps', companyId).findOne({ _id })) !== null;
}

/** What the gateway remembers of webhooks, and the channel that makes it forget. */
export function openCaches(
  { config, logger, lifecycle }: ServiceContext<GatewayConfig>,
  db: mongo.Db,
  budgets: MemoryBudgets,
): Caches {
  const vault = createVault(config.ENCRYPTION_KEYS);
  const webhooks = createWebhookStore(db, vault);
  const hasApp = hasAppIn(db);
  const cacheBytes = bytesOfMib(config.TARGET_CACHE_MIB);
  const targets = createTargetResolver({ cacheBytes, webhooks, hasApp });
  budgets.add('target_cache', cacheBytes, targets.usedBytes);
  const redis = connectRedis(config.REDIS_URL, logger);
  const subscriber = connectRedis(config.REDIS_URL, logger);
  lifecycle.onStop('redis', () => {
    redis.disconnect();
    subscriber.disconnect();
  });
  const others: ((id: string) => void)[] = [];
  const forget = (invalidation: Invalidation): void => {
    targets.forget(invalidation);
    for (const each of others) each(invalidation.id);
  };
  listenForInvalidations(subscriber, config.REDIS_PREFIX, {
    onChange: forget,
    onMissed: targets.forgetAll,
  });
  return {
    webhooks,
    hasApp,
    targets,
    answers: createKeptAnswers(vault),
    invalidate: async (invalidation) => {
      forget(invalidation);
      await announce(redis, config.REDIS_PREFIX, invalidation);
    },
    alsoForget: (each) => others.push(each),
    redis,
    isRedisUp: () => redis.status === 'ready',
  };
}

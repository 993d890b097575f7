import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createSigningKeyStore } from '@posthorn/platform/mongo/signing-keys/signing-keys.ts';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { redisAccessOf } from '@posthorn/platform/redis/access.ts';
import { connectRedis } from '@posthorn/platform/redis/connect.ts';
import { listenForInvalidations } from '@posthorn/platform/redis/invalidations.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { createVault } from '@posthorn/platform/vault/vault.ts';
import type { mongo } from 'mongoose';
import type { DispatcherConfig } from '../config.ts';
import { createSigningKeyLoader, SIGNER_CACHE_BYTES } from './load-signing-keys.ts';
import { createWebhookLoader, type LoadWebhook } from './load-webhook.ts';

/**
 * Opens the caches of webhooks and signing keys, which forget what gateways announce as changed. The
 * announcements come on a Redis connection of their own, because a subscribed connection can do nothing else.
 */
export function openWebhookLoader(
  { config, logger, lifecycle, keepTrying }: ServiceContext<DispatcherConfig>,
  db: mongo.Db,
  budgets: MemoryBudgets,
): LoadWebhook {
  const vault = createVault(config.ENCRYPTION_KEYS);
  const cacheBytes = memoryShare('dispatcher', 'webhook_cache', config.MEMORY_MIB);
  const signers = createSigningKeyLoader({
    signingKeys: createSigningKeyStore(db, vault),
    keepTrying,
    nowMs: systemClockMs,
  });
  const loader = createWebhookLoader({
    webhooks: createWebhookStore(db, vault),
    loadSigner: signers.load,
    logger,
    cacheBytes,
    keepTrying,
  });
  budgets.add('webhook_cache', cacheBytes, loader.usedBytes);
  budgets.add('signing_key_cache', SIGNER_CACHE_BYTES, signers.usedBytes);
  const subscriber = connectRedis(redisAccessOf(config), logger);
  lifecycle.onStop('redis subscriber', () => {
    subscriber.disconnect();
  });
  listenForInvalidations(subscriber, config.REDIS_PREFIX, {
    onChange: ({ id }) => {
      loader.forget(id);
      // A rotation is announced with the id of the company.
      signers.forget(id);
    },
    onMissed: () => {
      signers.forgetAll();
      loader.forgetAll();
    },
  });
  return loader.load;
}

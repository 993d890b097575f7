import { randomUUID } from 'node:crypto';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { connectRedis } from '@posthorn/platform/redis/connect.ts';
import { EVERYTHING, listenForInvalidations } from '@posthorn/platform/redis/invalidations.ts';
import {
  createEndpointFlows,
  type EndpointFlows,
} from '@posthorn/platform/redis/endpoint-flows.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createOpenCircuits, type OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import {
  createRunningAttempts,
  type RunningAttempts,
} from '@posthorn/platform/redis/running-attempts.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { createVault } from '@posthorn/platform/vault/vault.ts';
import type { mongo } from 'mongoose';
import type { DispatcherConfig } from './config.ts';
import { createWebhookLoader, type LoadWebhook } from './load/load-webhook.ts';

type Context = ServiceContext<DispatcherConfig>;

/** What dispatchers and gateways tell each other through Redis. All of it may be away at any time. */
export interface SharedState {
  loadWebhook: LoadWebhook;
  openCircuits: OpenCircuits;
  endpointFlows: EndpointFlows;
  runningAttempts: RunningAttempts;
  /** Called each time that Redis is there (again). */
  onReady: (act: () => void) => void;
  isConnected: () => boolean;
}

export function openSharedState(
  context: Context,
  db: mongo.Db,
  budgets: MemoryBudgets,
): SharedState {
  const { config, logger, lifecycle } = context;
  const redis = connectRedis(config.REDIS_URL, logger);
  const loadWebhook = openWebhookLoader(context, db, budgets);
  lifecycle.onStop('redis', () => {
    redis.disconnect();
  });
  return {
    loadWebhook,
    openCircuits: createOpenCircuits(redis, config.REDIS_PREFIX, systemClockMs),
    endpointFlows: createEndpointFlows(redis, config.REDIS_PREFIX, systemClockMs),
    runningAttempts: createRunningAttempts(redis, config.REDIS_PREFIX, randomUUID()),
    onReady: (act) => redis.on('ready', act),
    isConnected: () => redis.status === 'ready',
  };
}

/** Changed webhooks are announced on a connection of its own: a subscriber can do nothing else. */
function openWebhookLoader(
  { config, logger, lifecycle }: Context,
  db: mongo.Db,
  budgets: MemoryBudgets,
): LoadWebhook {
  const webhooks = createWebhookStore(db, createVault(config.ENCRYPTION_KEYS));
  const cacheBytes = config.WEBHOOK_CACHE_MIB * 1_048_576;
  const loader = createWebhookLoader(webhooks, logger, cacheBytes);
  budgets.add('webhook_cache', cacheBytes, loader.usedBytes);
  const subscriber = connectRedis(config.REDIS_URL, logger);
  lifecycle.onStop('redis subscriber', () => {
    subscriber.disconnect();
  });
  listenForInvalidations(subscriber, config.REDIS_PREFIX, {
    onChange: ({ id }) => {
      if (id === EVERYTHING) loader.forgetAll();
      else loader.forget(id);
    },
    onMissed: loader.forgetAll,
  });
  return loader.load;
}

import { randomUUID } from 'node:crypto';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks.ts';
import { connectRedis } from '@posthorn/platform/redis/connect.ts';
import { EVERYTHING, listenForInvalidations } from '@posthorn/platform/redis/invalidations.ts';
import { createOpenCircuits, type OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import {
  createRunningAttempts,
  type RunningAttempts,
} from '@posthorn/platform/redis/running-attempts.ts';
import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs } from '@posthorn/platform/system.ts';
import { createVault } from '@posthorn/platform/vault.ts';
import type { mongo } from 'mongoose';
import type { DispatcherConfig } from './config.ts';
import { createWebhookLoader, type LoadWebhook } from './load-webhook.ts';

type Context = ServiceContext<DispatcherConfig>;

/** What dispatchers and gateways tell each other through Redis. All of it may be away at any time. */
export interface SharedState {
  loadWebhook: LoadWebhook;
  openCircuits: OpenCircuits;
  runningAttempts: RunningAttempts;
  /** Called each time that Redis is there (again). */
  onReady: (act: () => void) => void;
  isConnected: () => boolean;
}

export function openSharedState(context: Context, db: mongo.Db): SharedState {
  const { config, logger, lifecycle } = context;
  const redis = connectRedis(config.REDIS_URL, logger);
  const loadWebhook = openWebhookLoader(context, db);
  lifecycle.onStop('redis', () => {
    redis.disconnect();
  });
  return {
    loadWebhook,
    openCircuits: createOpenCircuits(redis, config.REDIS_PREFIX, systemClockMs),
    runningAttempts: createRunningAttempts(redis, config.REDIS_PREFIX, randomUUID()),
    onReady: (act) => redis.on('ready', act),
    isConnected: () => redis.status === 'ready',
  };
}

/** Changed webhooks are announced on a connection of its own: a subscriber can do nothing else. */
function openWebhookLoader({ config, logger, lifecycle }: Context, db: mongo.Db): LoadWebhook {
  const webhooks = createWebhookStore(db, createVault(config.ENCRYPTION_KEYS));
  const loader = createWebhookLoader(webhooks, logger);
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

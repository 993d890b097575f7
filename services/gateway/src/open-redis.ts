import { redisAccessOf } from '@posthorn/platform/redis/access.ts';
import { connectRedis, type RedisClient } from '@posthorn/platform/redis/connect.ts';
import {
  announce,
  listenForInvalidations,
  type Invalidate,
  type Invalidation,
} from '@posthorn/platform/redis/invalidations.ts';
import {
  createLiveAttempts,
  listenForLiveAttempts,
  type LiveAttempts,
  type LiveNews,
} from '@posthorn/platform/redis/live-attempts.ts';
import { measureCommands } from '@posthorn/platform/redis/commands/measure-commands.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { GatewayConfig } from './config.ts';

export interface GatewayRedis {
  client: RedisClient;
  isConnected: () => boolean;
  invalidations: Invalidations;
  live: LiveAttempts;
  /** Calls it for all news of attempts that a dispatcher sends. */
  onNews: (hear: (news: LiveNews) => void) => void;
}

export interface Invalidations {
  invalidate: Invalidate;
  /** Registers a cache of this process. */
  addCache: (cache: InvalidatedCache) => void;
}

export interface InvalidatedCache {
  /** Called for each change, here or in another process. */
  forget: (invalidation: Invalidation) => void;
  /** Called when announcements may have been missed. Without it, entries stay until they expire. */
  forgetAll?: () => void;
}

/** Connects to Redis, and joins the channel on which processes announce changes to each other's caches. */
export function openRedis({
  config,
  logger,
  lifecycle,
  registry,
}: ServiceContext<GatewayConfig>): GatewayRedis {
  const access = redisAccessOf(config);
  const client = measureCommands(registry, connectRedis(access, logger));
  // A connection that has subscribed to a channel takes no other commands.
  const subscriber = connectRedis(access, logger);
  lifecycle.onStop('redis', () => {
    client.disconnect();
    subscriber.disconnect();
  });
  const caches: InvalidatedCache[] = [];
  const forget = (invalidation: Invalidation): void => {
    for (const cache of caches) cache.forget(invalidation);
  };
  listenForInvalidations(subscriber, config.REDIS_PREFIX, {
    onChange: forget,
    onMissed: () => {
      for (const cache of caches) cache.forgetAll?.();
    },
  });
  return {
    client,
    live: createLiveAttempts(client, config.REDIS_PREFIX, systemClockMs),
    onNews: (onNews) => {
      listenForLiveAttempts(subscriber, config.REDIS_PREFIX, { onNews, logger });
    },
    isConnected: () => client.status === 'ready',
    invalidations: {
      async invalidate(...changed) {
        changed.forEach(forget);
        await announce(client, config.REDIS_PREFIX, changed);
      },
      addCache: (cache) => caches.push(cache),
    },
  };
}

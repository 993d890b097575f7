import { Redis } from 'ioredis';
import type { Logger } from '../service/logger.ts';

/**
 * A connection that never makes a caller wait: commands fail at once while Redis is away, and it
 * comes back by itself. One warning per outage, not one per try.
 */
export function connectRedis(url: string, logger: Logger): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    connectTimeout: 3_000,
    commandTimeout: 1_000,
    // A command that timed out is kept until its answer comes: a Redis that hangs would fill the memory.
    socketTimeout: 5_000,
    retryStrategy: (tryNumber) => Math.min(tryNumber * 100, 2_000),
  });
  let isReported = false;
  redis.on('error', (error: Error) => {
    if (isReported) return;
    isReported = true;
    logger.warn({ error: error.message }, 'redis is away, going on without it');
  });
  redis.on('ready', () => {
    isReported = false;
  });
  return redis;
}

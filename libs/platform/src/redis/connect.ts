import { Redis, type RedisOptions } from 'ioredis';
import type { SecureContext } from 'node:tls';
import type { RedisAccess, Sentinels } from './access.ts';
import type { Logger } from '../service/logger.ts';

/**
 * Returns a connection on which no caller waits for Redis: commands fail at once while it is away. It
 * reconnects by itself, and logs one warning for each outage.
 */
export function connectRedis(
  { url, tls = null, sentinels = null }: Pick<RedisAccess, 'url'> & Partial<RedisAccess>,
  logger: Logger,
): Redis {
  const redis = new Redis(url, {
    ...(tls && { tls: { secureContext: tls } }),
    ...(sentinels && toOptions(sentinels, url, tls)),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    connectTimeout: 3_000,
    commandTimeout: 1_000,
    // A command that timed out stays in memory until its reply comes: without this, a Redis that hangs would fill it.
    socketTimeout: 5_000,
    retryStrategy: (tryNumber) => Math.min(tryNumber * 100, 2_000),
  });
  let isReported = false;
  redis.on('error', (error: Error) => {
    if (isReported) return;
    isReported = true;
    logger.warn({ error: error.message }, 'Redis is unavailable, continuing without it');
  });
  redis.on('ready', () => {
    isReported = false;
  });
  return redis;
}

/** Sentinels are reached with TLS when the servers are. */
function toOptions(
  { addresses, name, password }: Sentinels,
  url: string,
  tls: SecureContext | null,
): RedisOptions {
  return {
    sentinels: addresses,
    // One that hangs must not keep the next one from being asked.
    sentinelCommandTimeout: 1_000,
    name,
    ...(password !== undefined && { sentinelPassword: password }),
    ...(url.startsWith('rediss:') && {
      enableTLSForSentinelMode: true,
      sentinelTLS: tls ? { secureContext: tls } : {},
    }),
  };
}

import { Redis, type Cluster, type RedisOptions } from 'ioredis';
import type { SecureContext } from 'node:tls';
import type { RedisAccess, Sentinels } from './access.ts';
import { connectCluster } from './connect-cluster.ts';
import type { Logger } from '../service/logger.ts';

/** A cluster has its keys on several nodes: commands on more than one key go through across-slots.ts. */
export type RedisClient = Redis | Cluster;

type Access = Pick<RedisAccess, 'url'> & Partial<RedisAccess>;

const TIMEOUTS = {
  connectTimeout: 3_000,
  commandTimeout: 1_000,
  // A command that timed out stays in memory until its reply comes: without this, a Redis that hangs would fill it.
  socketTimeout: 5_000,
};
const retryStrategy = (tryNumber: number): number => Math.min(tryNumber * 100, 2_000);

/**
 * Returns a connection on which no caller waits for Redis: commands fail at once while it is away. It
 * reconnects by itself, and logs one warning for each outage.
 */
export function connectRedis(access: Access, logger: Logger): RedisClient {
  const { url, tls = null, clusterNodes: nodes = null } = access;
  return nodes
    ? connectCluster({ url, tls, nodes, timeouts: TIMEOUTS, retryStrategy }, logger)
    : connectServer(access, logger);
}

function connectServer({ url, tls = null, sentinels = null }: Access, logger: Logger): Redis {
  const redis = new Redis(url, {
    ...(tls && { tls: { secureContext: tls } }),
    ...(sentinels && toOptions(sentinels, url, tls)),
    ...TIMEOUTS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    retryStrategy,
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

import { connectRedis, redisAccessOf, type RedisClient } from '@posthorn/platform/redis/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { redisAccess } from '@posthorn/platform/service/store-settings.ts';
import { Cluster, type Redis } from 'ioredis';
import { z } from 'zod';
import { createNamespace } from '../process/namespace.ts';
import { eventually } from '../time/eventually.ts';
import { startRedisCluster } from './redis-cluster.ts';

export interface TestedRedis {
  /** The connection of the tests. */
  redis: RedisClient;
  /** Opens one more, without waiting for it. */
  connect: () => RedisClient;
  /** Closes all connections. */
  stop: () => Promise<void>;
}

/** What keeps its state in Redis is tested on each of these: the server of the stack, and a cluster with TLS. */
export const REDIS_KINDS = [
  ['a server', openServer],
  ['a cluster', openCluster],
] as const;

function openServer(): Promise<TestedRedis> {
  return openTestedRedis({ REDIS_URL: createNamespace().REDIS_URL }, () => Promise.resolve());
}

async function openCluster(): Promise<TestedRedis> {
  const cluster = await startRedisCluster();
  return openTestedRedis(cluster.env, cluster.stop);
}

/** Resolves when it is connected. `stop` follows the end of the connections. */
export async function openTestedRedis(
  env: Record<string, string>,
  stop: () => Promise<void>,
): Promise<TestedRedis> {
  const access = redisAccessOf(z.object(redisAccess).parse(env));
  const connections: RedisClient[] = [];
  const connect = (): RedisClient => {
    const redis = connectRedis(access, createLogger('test', 'silent'));
    connections.push(redis);
    return redis;
  };
  const redis = connect();
  await eventually('a connection', () => redis.status === 'ready');
  return {
    redis,
    connect,
    async stop() {
      for (const connection of connections) connection.disconnect();
      await stop();
    },
  };
}

/** A connection to each server that has keys of its own. */
export function serversOf(redis: RedisClient): Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/** The keys of all servers that begin with the prefix. */
export async function keysOf(redis: RedisClient, prefix: string): Promise<string[]> {
  const keys = await Promise.all(serversOf(redis).map((server) => server.keys(`${prefix}*`)));
  return keys.flat();
}

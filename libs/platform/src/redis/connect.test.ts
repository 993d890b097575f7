import { describe, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { z } from 'zod';
import { redisAccess } from '../service/store-settings.ts';
import { createLogger } from '../service/logger.ts';
import { connectRedis, type RedisAccess, redisAccessOf } from './connect.ts';

const accessOf = (settings: Record<string, string>): RedisAccess =>
  redisAccessOf(z.object(redisAccess).parse(settings));
const REDIS_CLUSTER_NODES = 'redis-0.data:6379, redis-1.data:6380';

describe('the nodes of a Redis Cluster', () => {
  test.each(['rediss://:hush@unused', 'rediss://unused/', 'rediss://unused/0?db=0'])(
    'are read beside %s',
    (REDIS_URL) => {
      const { clusterNodes } = accessOf({ REDIS_URL, REDIS_CLUSTER_NODES });
      expect(clusterNodes).toEqual([
        { host: 'redis-0.data', port: 6379 },
        { host: 'redis-1.data', port: 6380 },
      ]);
    },
  );

  test('are refused beside Sentinels', () => {
    const settings = { REDIS_URL: 'rediss://unused', REDIS_SENTINELS: 'sentinel-0:26379' };
    expect(() => accessOf({ ...settings, REDIS_CLUSTER_NODES })).toThrow(
      /REDIS_CLUSTER_NODES and REDIS_SENTINELS are both set/,
    );
  });

  test.each(['rediss://:hush@unused/2', 'rediss://:hush@unused?db=2'])(
    'are refused beside another database, and the password is not shown: %s',
    (REDIS_URL) => {
      const start = (): RedisAccess => accessOf({ REDIS_URL, REDIS_CLUSTER_NODES });
      expect(start).toThrow(/REDIS_URL has database 2: a cluster has database 0 only/);
      expect(start).not.toThrow(/hush/);
    },
  );
});

test('a connection may fail twice', async () => {
  const server = createServer((socket) => socket.unref())
    .listen(0, '127.0.0.1')
    .unref();
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const redis = connectRedis(
    accessOf({ REDIS_URL: `redis://127.0.0.1:${port}` }),
    createLogger('test', 'silent'),
  );
  await once(redis, 'connect');
  const { stream } = redis as Redis;
  redis.disconnect();
  stream.destroy(new Error('its certificate is unknown'));
  await new Promise<void>((resolve) => redis.once('end', resolve));
  expect(() => stream.emit('error', new Error('an alert'))).not.toThrow();
});

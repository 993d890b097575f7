import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { redisAccess } from '../service/store-settings.ts';
import { type RedisAccess, redisAccessOf } from './connect.ts';

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

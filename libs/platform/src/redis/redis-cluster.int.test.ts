import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import {
  startRedisCluster,
  type RedisCluster,
} from '../../../../test/support/stores/redis-cluster.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createLogger } from '../service/logger.ts';
import { redisAccess } from '../service/store-settings.ts';
import { connectRedis, redisAccessOf, type RedisClient } from './connect.ts';
import { readAll, sendAll, type Reply } from './commands.ts';
import { announce, listenForInvalidations } from './invalidations.ts';

/** Each of the three nodes has some of them. */
const KEYS = Array.from({ length: 30 }, (_, n) => `key-${n}`);
const [FIRST = ''] = KEYS;
const AWAY = 'Redis is unavailable, continuing without it';
const NODE_AWAY = 'A node of the Redis Cluster is unavailable, continuing without it';

interface Line {
  msg: string;
  node?: string;
}

const logged: Line[] = [];
const logger = createLogger('test', 'info', {
  write: (line) => void logged.push(JSON.parse(line) as Line),
});

let cluster: RedisCluster;
let connections: RedisClient[] = [];

beforeAll(async () => {
  cluster = await startRedisCluster();
});

afterEach(() => {
  for (const redis of connections) redis.disconnect();
  connections = [];
});

afterAll(() => cluster.stop());

function connectWith(settings: Record<string, string>): RedisClient {
  const redis = connectRedis(redisAccessOf(z.object(redisAccess).parse(settings)), logger);
  connections.push(redis);
  return redis;
}

async function connect(): Promise<RedisClient> {
  const redis = connectWith(cluster.env);
  await eventually('a connection', () => redis.status === 'ready');
  return redis;
}

const writeAll = (redis: RedisClient, value: string): Promise<Reply[]> =>
  sendAll(
    redis,
    KEYS.map((key) => ['set', key, value]),
  );
const isOk = ([error, value]: Reply): boolean => error === null && value === 'OK';

describe('A Redis Cluster', () => {
  test('is reached with TLS and a password, and only by its own CA', async () => {
    const { REDIS_URL, REDIS_CLUSTER_NODES } = cluster.env;
    await connect();
    logged.length = 0;
    const refused = [
      connectWith({ REDIS_URL, REDIS_CLUSTER_NODES }),
      connectWith({ ...cluster.env, REDIS_URL: 'rediss://:hush-wrong@unused' }),
    ];
    for (const redis of refused) {
      await eventually('a refusal', () => redis.status === 'reconnecting');
      await expect(redis.get(FIRST)).rejects.toThrow('No node of the Redis Cluster is available');
    }
    expect(logged.filter(({ msg }) => msg === AWAY)).toHaveLength(refused.length);
  });

  test('has each key where its slot has moved to', async () => {
    const redis = await connect();
    expect((await writeAll(redis, 'before')).every(isOk)).toBe(true);
    const before = await cluster.ownerOf(FIRST);
    await cluster.moveSlotOf(FIRST);
    expect(await cluster.ownerOf(FIRST)).not.toBe(before);
    expect(await readAll(redis, KEYS)).toEqual(KEYS.map(() => 'before'));
    expect((await writeAll(redis, 'after')).every(isOk)).toBe(true);
    expect(await readAll(redis, KEYS)).toEqual(KEYS.map(() => 'after'));
  });

  test('lets nobody wait for a lost node, and is whole again when its replica has taken over', async () => {
    const [redis, subscriber] = [await connect(), connectWith(cluster.env)];
    const heard: string[] = [];
    const onChange = ({ id }: { id: string }) => heard.push(id);
    listenForInvalidations(subscriber, 'p:', onChange);
    const change = (id: string) => announce(redis, 'p:', [{ companyId: 'comp_1', id }]);
    const isHeard = (id: string) => async (): Promise<boolean> => {
      await change(id);
      return heard.includes(id);
    };
    await eventually('a listener', isHeard('wh_1'));
    await writeAll(redis, 'before');
    const lost = await cluster.ownerOf(FIRST);
    await cluster.addReplica(lost);
    logged.length = 0;

    // Its replica takes over only later: who waited for that would wait here for ever.
    await lost.kill();
    const replies = await writeAll(redis, 'without');
    expect(replies.some(isOk)).toBe(true);
    expect(replies.every(isOk)).toBe(false);
    const values = await readAll(redis, KEYS);
    expect(new Set(values)).toEqual(new Set(['without', null]));

    await cluster.noticeLosses();
    await eventually('all keys', async () => (await writeAll(redis, 'after')).every(isOk));
    await eventually('a listener', isHeard('wh_2'));
    const nodes = logged.map(({ msg, node }) => [msg, node]);
    expect(new Set(nodes.map(String))).toEqual(new Set([`${NODE_AWAY},localhost:${lost.port}`]));
    expect(nodes.length).toBeLessThanOrEqual(connections.length);
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { createLogger } from '../service/logger.ts';
import { connectRedis } from './connect.ts';
import { createRunningAttempts, type RunningAttempts } from './running-attempts.ts';

const LONG_MS = 60_000;

describe('running attempts in Redis', () => {
  const env = createNamespace();
  let redis: Redis;
  let owner: RunningAttempts;
  let successor: RunningAttempts;
  let round = 0;

  beforeAll(async () => {
    redis = connectRedis({ url: env.REDIS_URL }, createLogger('test', 'silent'));
    await eventually('a connection', () => redis.status === 'ready');
  });

  beforeEach(() => {
    round += 1;
    const prefix = `${env.REDIS_PREFIX}${round}:`;
    owner = createRunningAttempts(redis, prefix, 'owner');
    successor = createRunningAttempts(redis, prefix, 'successor');
  });

  afterAll(() => {
    redis.disconnect();
  });

  it('are claimed by another process only when nobody has announced them, and by the one that announced them', async () => {
    owner.announce(['att_1', 'att_2'], LONG_MS);
    const asked = ['att_1', 'att_2', 'att_3'];
    expect(await successor.claim(asked, LONG_MS)).toEqual(new Set(['att_3']));
    expect(await owner.claim(asked, LONG_MS)).toEqual(new Set(['att_1', 'att_2']));
  });

  it('may be claimed after they are withdrawn', async () => {
    owner.announce(['att_1', 'att_2'], LONG_MS);
    owner.withdraw(['att_1']);
    expect(await successor.claim(['att_1', 'att_2'], LONG_MS)).toEqual(new Set(['att_1']));
  });

  it('may be claimed when they are not announced again in time', async () => {
    owner.announce(['att_1'], 30);
    await eventually('free', async () => (await successor.claim(['att_1'], LONG_MS)).size === 1);
  });

  it('may be claimed while Redis refuses writes, except those that were announced before', async () => {
    owner.announce(['att_1'], LONG_MS);
    await redis.config('SET', 'min-replicas-to-write', '1');
    try {
      const claimed = await successor.claim(['att_1', 'att_2'], LONG_MS);
      expect(claimed).toEqual(new Set(['att_2']));
    } finally {
      await redis.config('SET', 'min-replicas-to-write', '0');
    }
  });

  it('are unknown without Redis: claiming rejects, announcing does not', async () => {
    const away = connectRedis({ url: env.REDIS_URL }, createLogger('test', 'silent'));
    away.disconnect();
    const cutOff = createRunningAttempts(away, env.REDIS_PREFIX, 'owner');
    cutOff.announce(['att_1'], LONG_MS);
    cutOff.withdraw(['att_1']);
    await expect(cutOff.claim(['att_1'], LONG_MS)).rejects.toThrow();
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { eventually } from '../../../../test/support/eventually.ts';
import { createNamespace } from '../../../../test/support/namespace.ts';
import { createLogger } from '../logger.ts';
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
    redis = connectRedis(env.REDIS_URL, createLogger('test', 'silent'));
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

  it('are found by others among what they ask for, and not by who announced them', async () => {
    owner.announce(['att_1', 'att_2'], LONG_MS);
    const asked = ['att_1', 'att_2', 'att_3'];
    expect(await successor.among(asked)).toEqual(new Set(['att_1', 'att_2']));
    expect(await owner.among(asked)).toEqual(new Set());
  });

  it('are gone once they are withdrawn, and only those', async () => {
    owner.announce(['att_1', 'att_2'], LONG_MS);
    owner.withdraw(['att_1']);
    expect(await successor.among(['att_1', 'att_2'])).toEqual(new Set(['att_2']));
  });

  it('are forgotten by themselves when nobody withdraws them', async () => {
    owner.announce(['att_1'], 30);
    await eventually('forgotten', async () => (await successor.among(['att_1'])).size === 0);
  });

  it('are not known without Redis: asking rejects, telling does not', async () => {
    const away = connectRedis(env.REDIS_URL, createLogger('test', 'silent'));
    away.disconnect();
    const cutOff = createRunningAttempts(away, env.REDIS_PREFIX, 'owner');
    cutOff.announce(['att_1'], LONG_MS);
    cutOff.withdraw(['att_1']);
    await expect(cutOff.among(['att_1'])).rejects.toThrow();
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { createLogger } from '../service/logger.ts';
import { connectRedis } from './connect.ts';
import {
  createEndpointFlows,
  TOLD_FOR_MS,
  type EndpointFlow,
  type EndpointFlows,
} from './endpoint-flows.ts';

const PLAIN: EndpointFlow = { concurrency: 16, ratePerSecond: null, heldUntilMs: null };

describe('flows of endpoints in Redis', () => {
  const env = createNamespace();
  let redis: Redis;
  let nowMs: number;
  let prefix: string;
  let owner: EndpointFlows;
  let reader: EndpointFlows;
  let round = 0;

  beforeAll(async () => {
    redis = connectRedis(env.REDIS_URL, createLogger('test', 'silent'));
    await eventually('a connection', () => redis.status === 'ready');
  });

  beforeEach(() => {
    round += 1;
    nowMs = 1_000_000;
    prefix = `${env.REDIS_PREFIX}${round}:`;
    owner = createEndpointFlows(redis, prefix, () => nowMs);
    reader = createEndpointFlows(redis, prefix, () => nowMs);
  });

  afterAll(() => {
    redis.disconnect();
  });

  it('are there for a gateway as they were told last, and for other endpoints not at all', async () => {
    const held = { concurrency: 2, ratePerSecond: 0.2, heldUntilMs: nowMs + 5_000 };
    owner.tell(
      new Map([
        ['wh_1', PLAIN],
        ['wh_2', held],
      ]),
    );
    expect(await reader.read('wh_1')).toEqual(PLAIN);
    expect(await reader.read('wh_2')).toEqual(held);
    expect(await reader.read('wh_3')).toBeNull();
    owner.tell(new Map([['wh_1', held]]));
    expect(await reader.read('wh_1')).toEqual(held);
  });

  it('go by themselves when the dispatcher that told them is gone', async () => {
    owner.tell(new Map([['wh_1', PLAIN]]));
    const leftMs = await redis.pttl(`${prefix}endpoint-flow:wh_1`);
    expect(leftMs).toBeGreaterThan(TOLD_FOR_MS - 60_000);
    expect(leftMs).toBeLessThanOrEqual(TOLD_FOR_MS);
  });

  it('are not taken for flows when something else lies there', async () => {
    await redis.set(`${prefix}endpoint-flow:wh_1`, '{"concurrency":"many"}');
    await expect(reader.read('wh_1')).rejects.toThrow();
  });

  it('show a new owner the pauses that have not ended, the newest of each endpoint', async () => {
    owner.held('wh_1', nowMs + 500);
    owner.held('wh_1', nowMs + 900);
    owner.held('wh_2', nowMs + 700);
    const expected = new Map([
      ['wh_1', nowMs + 900],
      ['wh_2', nowMs + 700],
    ]);
    expect(await reader.readHeld()).toEqual(expected);
  });

  it('leave nothing of pauses that are over', async () => {
    owner.held('wh_1', nowMs + 500);
    owner.held('wh_2', nowMs + 501);
    nowMs += 500;
    expect(await reader.readHeld()).toEqual(new Map([['wh_2', nowMs + 1]]));
    // Told and not waited for, but on the same connection and so in this order.
    nowMs = 1_000_000;
    expect(await reader.readHeld()).toEqual(new Map([['wh_2', nowMs + 501]]));
  });

  it('are not known without Redis: reading rejects, telling does not', async () => {
    const away = connectRedis(env.REDIS_URL, createLogger('test', 'silent'));
    away.disconnect();
    const cutOff = createEndpointFlows(away, prefix, () => nowMs);
    cutOff.tell(new Map([['wh_1', PLAIN]]));
    cutOff.held('wh_1', nowMs + 500);
    await expect(cutOff.read('wh_1')).rejects.toThrow();
    await expect(cutOff.readHeld()).rejects.toThrow();
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { REDIS_KINDS, type TestedRedis } from '../../../../test/support/stores/tested-redis.ts';
import {
  createEndpointFlows,
  FLOW_TTL_MS,
  urlHashOf,
  type EndpointFlow,
  type EndpointFlows,
} from './endpoint-flows.ts';

const URL = 'https://one.example/hook?token=secret';
const PLAIN: EndpointFlow = {
  concurrency: 16,
  ceiling: 1_000,
  ratePerSecond: null,
  heldUntilMs: null,
};

describe.each(REDIS_KINDS)('flows of endpoints in %s', (_kind, open) => {
  const env = createNamespace();
  let store: TestedRedis;
  let nowMs: number;
  let prefix: string;
  let owner: EndpointFlows;
  let reader: EndpointFlows;
  let round = 0;

  beforeAll(async () => {
    store = await open();
  });

  beforeEach(() => {
    round += 1;
    nowMs = 1_000_000;
    prefix = `${env.REDIS_PREFIX}${round}:`;
    owner = createEndpointFlows(store.redis, prefix, () => nowMs);
    reader = createEndpointFlows(store.redis, prefix, () => nowMs);
  });

  afterAll(() => store.stop());

  it('are read as they were reported last, and are null for other endpoints', async () => {
    const held = { ...PLAIN, concurrency: 2, ratePerSecond: 0.2, heldUntilMs: nowMs + 5_000 };
    owner.report(
      new Map([
        ['wh_1', PLAIN],
        ['wh_2', held],
      ]),
    );
    expect(await reader.read('wh_1')).toEqual(PLAIN);
    expect(await reader.read('wh_2')).toEqual(held);
    expect(await reader.read('wh_3')).toBeNull();
    owner.report(new Map([['wh_1', held]]));
    expect(await reader.read('wh_1')).toEqual(held);
  });

  it('expire when they are not reported again', async () => {
    owner.report(new Map([['wh_1', PLAIN]]));
    const leftMs = await store.redis.pttl(`${prefix}endpoint-flow:wh_1`);
    expect(leftMs).toBeGreaterThan(FLOW_TTL_MS - 60_000);
    expect(leftMs).toBeLessThanOrEqual(FLOW_TTL_MS);
  });

  it('are not known when the stored value is not a flow', async () => {
    await store.redis.set(`${prefix}endpoint-flow:wh_1`, '{"concurrency":"many"}');
    expect(await reader.read('wh_1')).toBeNull();
  });

  it('give a new owner the current holds, the newest of each endpoint', async () => {
    owner.reportHold('wh_1', URL, nowMs + 500);
    owner.reportHold('wh_1', URL, nowMs + 900);
    owner.reportHold('wh_2', URL, nowMs + 700);
    const expected = new Map([
      ['wh_1', { untilMs: nowMs + 900, urlHash: urlHashOf(URL) }],
      ['wh_2', { untilMs: nowMs + 700, urlHash: urlHashOf(URL) }],
    ]);
    expect(await reader.takeOverHolds()).toEqual(expected);
  });

  it('remove holds that have ended', async () => {
    owner.reportHold('wh_1', URL, nowMs + 500);
    owner.reportHold('wh_2', URL, nowMs + 501);
    nowMs += 500;
    const urlHash = urlHashOf(URL);
    const left = new Map([['wh_2', { untilMs: nowMs + 1, urlHash }]]);
    expect(await reader.takeOverHolds()).toEqual(left);
    // The report is not awaited. It goes over the same connection, so it arrives first.
    nowMs = 1_000_000;
    expect(await reader.takeOverHolds()).toEqual(
      new Map([['wh_2', { untilMs: nowMs + 501, urlHash }]]),
    );
    expect(await store.redis.hlen(`${prefix}endpoint-holds`)).toBe(2);
  });

  it('are read without their URL where that is not stored', async () => {
    await store.redis.hset(`${prefix}endpoint-holds`, 'wh_1', String(nowMs + 500));
    const hold = { untilMs: nowMs + 500, urlHash: null };
    expect(await reader.takeOverHolds()).toEqual(new Map([['wh_1', hold]]));
  });

  it('are unknown without Redis: reading rejects, reporting does not', async () => {
    const away = store.connect();
    away.disconnect();
    const cutOff = createEndpointFlows(away, prefix, () => nowMs);
    cutOff.report(new Map([['wh_1', PLAIN]]));
    cutOff.reportHold('wh_1', URL, nowMs + 500);
    await expect(cutOff.read('wh_1')).rejects.toThrow();
    await expect(cutOff.takeOverHolds()).rejects.toThrow();
  });
});

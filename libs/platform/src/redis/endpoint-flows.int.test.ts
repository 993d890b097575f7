import { beforeEach, describe, expect, it } from '@jest/globals';
import { MAX_HOLD_MS } from '@posthorn/domain/delivery/schedule.ts';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { sampleFlow } from '../../../../test/support/samples/sample-flow.ts';
import { REDIS_KINDS } from '../../../../test/support/stores/tested-redis.ts';
import {
  createEndpointFlows,
  FLOW_TTL_MS,
  pauseKeyOf,
  urlHashOf,
  type EndpointFlow,
  type EndpointFlows,
} from './endpoint-flows.ts';

const URL = 'https://one.example/hook?token=secret';
const PLAIN = sampleFlow();

describe.each(REDIS_KINDS)('flows of endpoints in %s', (_kind, open) => {
  const env = createNamespace();
  const store = duringTests(open, ({ stop }) => stop());
  let nowMs: number;
  let prefix: string;
  let owner: EndpointFlows;
  let reader: EndpointFlows;
  let round = 0;

  beforeEach(() => {
    round += 1;
    nowMs = 1_000_000;
    prefix = `${env.REDIS_PREFIX}${round}:`;
    owner = createEndpointFlows(store.redis, prefix, () => nowMs);
    reader = createEndpointFlows(store.redis, prefix, () => nowMs);
  });

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

  it('are read for several webhooks in order, with what was learned', async () => {
    const learned: EndpointFlow['learned'] = {
      urlHash: urlHashOf(URL),
      isSlow: true,
      quickestMs: 12.5,
      limit: { value: 3.5, slowStartThreshold: null, lowestMs: 11 },
      rate: { base: 20, plateau: null, grownMs: 300, confirmed: 1 },
    };
    owner.report(new Map([['wh_2', { ...PLAIN, learned }]]));
    expect(await reader.readAll(['wh_1', 'wh_2'])).toEqual([null, { ...PLAIN, learned }]);
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

  describe('pauses', () => {
    const at = (webhookId: string, partition = 1, url = URL) => ({ webhookId, url, partition });
    const taken = async (partitions: number[], most = 100) =>
      (await reader.takeOverPauses(partitions, { most, withinMs: 60_000 })).found;
    const keysIn = (partition: number): Promise<string[]> =>
      store.redis.zrange(`${prefix}pauses-of-partition:${partition}`, 0, -1);

    it('are read by their partitions, the newest of each endpoint', async () => {
      owner.reportPause(at('wh_1'), nowMs + 500);
      owner.reportPause(at('wh_1'), nowMs + 900);
      owner.reportPause(at('wh_2', 2), nowMs + 700);
      const first = { untilMs: nowMs + 900, partition: 1 };
      const second = { untilMs: nowMs + 700, partition: 2 };
      expect(await taken([1, 2, 3])).toEqual(
        new Map([
          [pauseKeyOf(at('wh_1')), first],
          [pauseKeyOf(at('wh_2')), second],
        ]),
      );
      expect(await taken([2])).toEqual(new Map([[pauseKeyOf(at('wh_2')), second]]));
      expect(await taken([1, 2], 1)).toHaveProperty('size', 1);
    });

    it('are those of their URL, which is not stored', async () => {
      owner.reportPause(at('wh_1'), nowMs + 500);
      expect(await taken([1])).not.toHaveProperty(pauseKeyOf(at('wh_1', 1, `${URL}&other`)));
      expect((await keysIn(1)).join()).not.toContain('secret');
    });

    it('are left out when they have ended, and removed by the next pause of their partition', async () => {
      owner.reportPause(at('wh_1'), nowMs + 500);
      owner.reportPause(at('wh_2'), nowMs + 501);
      nowMs += 500;
      expect([...(await taken([1])).keys()]).toEqual([pauseKeyOf(at('wh_2'))]);
      expect(await keysIn(1)).toHaveLength(2);
      owner.reportPause(at('wh_3'), nowMs + 500);
      // The report is not awaited. It goes over the same connection, so it arrives first.
      expect(await keysIn(1)).toEqual([pauseKeyOf(at('wh_2')), pauseKeyOf(at('wh_3'))]);
    });

    it('leave no key behind when their dispatcher has died', async () => {
      owner.reportPause(at('wh_1'), nowMs + 500);
      await keysIn(1);
      const leftMs = await store.redis.pttl(`${prefix}pauses-of-partition:1`);
      expect(leftMs).toBeGreaterThan(MAX_HOLD_MS);
    });

    it('are unknown of a partition that cannot be read, which is not named as read', async () => {
      owner.reportPause(at('wh_1'), nowMs + 500);
      await store.redis.set(`${prefix}pauses-of-partition:2`, 'no sorted set');
      const limits = { most: 100, withinMs: 60_000 };
      const { found, read } = await reader.takeOverPauses([1, 2], limits);
      expect([[...found.keys()], read]).toEqual([[pauseKeyOf(at('wh_1'))], [1]]);
      await expect(reader.takeOverPauses([2], limits)).rejects.toThrow();
    });
  });

  it('are unknown without Redis: reading rejects, reporting does not', async () => {
    const away = store.connect();
    away.disconnect();
    const cutOff = createEndpointFlows(away, prefix, () => nowMs);
    cutOff.report(new Map([['wh_1', PLAIN]]));
    cutOff.reportPause({ webhookId: 'wh_1', url: URL, partition: 1 }, nowMs + 500);
    await expect(cutOff.read('wh_1')).rejects.toThrow();
    await expect(cutOff.readAll(['wh_1'])).rejects.toThrow();
    await expect(cutOff.takeOverPauses([1], { most: 1, withinMs: 60_000 })).rejects.toThrow();
  });
});

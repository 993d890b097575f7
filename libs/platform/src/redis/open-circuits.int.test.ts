import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { REDIS_KINDS, type TestedRedis } from '../../../../test/support/stores/tested-redis.ts';
import { createOpenCircuits, type OpenCircuits } from './open-circuits.ts';

const FORGOTTEN_AFTER_MS = 12 * 3_600_000;

describe.each(REDIS_KINDS)('open circuits in %s', (_kind, open) => {
  const env = createNamespace();
  let store: TestedRedis;
  let nowMs: number;
  let owner: OpenCircuits;
  let successor: OpenCircuits;
  let round = 0;

  beforeAll(async () => {
    store = await open();
  });

  beforeEach(() => {
    round += 1;
    nowMs = 1_000_000;
    const prefix = `${env.REDIS_PREFIX}${round}:`;
    owner = createOpenCircuits(store.redis, prefix, () => nowMs);
    successor = createOpenCircuits(store.redis, prefix, () => nowMs);
  });

  afterAll(() => store.stop());

  it('are read with the time of their probe, all at once or one by one', async () => {
    owner.opened('wh_1', nowMs + 500);
    owner.opened('wh_2', nowMs + 700);
    const expected = new Map([
      ['wh_1', nowMs + 500],
      ['wh_2', nowMs + 700],
    ]);
    expect(await successor.takeOverCircuits()).toEqual(expected);
    expect(await successor.read('wh_2')).toBe(nowMs + 700);
    expect(await successor.read('wh_3')).toBeNull();
  });

  it('have the newest time when they open again, and are removed when they close', async () => {
    owner.opened('wh_1', nowMs + 500);
    owner.opened('wh_1', nowMs + 900);
    expect(await successor.read('wh_1')).toBe(nowMs + 900);
    owner.closed('wh_1');
    expect(await successor.read('wh_1')).toBeNull();
    expect(await successor.takeOverCircuits()).toEqual(new Map());
  });

  it('are listed with the time since when they are open, which a failed probe does not change', async () => {
    owner.opened('wh_1', nowMs + 500);
    nowMs += 600;
    owner.opened('wh_1', nowMs + 500);
    const open = { webhookId: 'wh_1', probeAtMs: 1_001_100, sinceMs: 1_000_000 };
    expect(await successor.list()).toEqual([open]);
    owner.closed('wh_1');
    expect(await successor.list()).toEqual([]);
    owner.opened('wh_1', nowMs + 500);
    expect(await successor.list()).toEqual([{ ...open, sinceMs: 1_000_600 }]);
    nowMs += FORGOTTEN_AFTER_MS + 500;
    expect(await successor.list()).toEqual([]);
  });

  it('stay when their probe is due, and are forgotten twelve hours later', async () => {
    owner.opened('wh_1', nowMs);
    nowMs += FORGOTTEN_AFTER_MS - 1;
    expect(await successor.read('wh_1')).toBe(1_000_000);
    nowMs += 1;
    expect(await successor.read('wh_1')).toBeNull();
    expect(await successor.takeOverCircuits()).toEqual(new Map());
    nowMs = 1_000_000;
    // The report is not awaited. It goes over the same connection, so it arrives first.
    expect(await successor.takeOverCircuits()).toEqual(new Map());
  });

  it('are unknown without Redis: reading rejects, writing does not', async () => {
    const away = store.connect();
    away.disconnect();
    const cutOff = createOpenCircuits(away, env.REDIS_PREFIX, () => nowMs);
    cutOff.opened('wh_1', nowMs);
    cutOff.closed('wh_1');
    await expect(cutOff.takeOverCircuits()).rejects.toThrow();
    await expect(cutOff.list()).rejects.toThrow();
    await expect(cutOff.read('wh_1')).rejects.toThrow();
  });
});

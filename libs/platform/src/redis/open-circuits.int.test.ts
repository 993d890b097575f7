import { beforeEach, describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { REDIS_KINDS } from '../../../../test/support/stores/tested-redis.ts';
import {
  createOpenCircuits,
  MAX_LISTED,
  type CircuitOwner,
  type CircuitTimes,
  type OpenCircuits,
} from './open-circuits.ts';

const FORGOTTEN_AFTER_MS = 12 * 3_600_000;

describe.each(REDIS_KINDS)('open circuits in %s', (_kind, open) => {
  const env = createNamespace();
  const store = duringTests(open, ({ stop }) => stop());
  let nowMs: number;
  let owner: OpenCircuits;
  let successor: OpenCircuits;
  let round = 0;
  let prefix: string;

  beforeEach(() => {
    round += 1;
    nowMs = 1_000_000;
    prefix = `${env.REDIS_PREFIX}${round}:`;
    owner = createOpenCircuits(store.redis, prefix, () => nowMs);
    successor = createOpenCircuits(store.redis, prefix, () => nowMs);
  });

  const at = (webhookId: string, partition = 1, companyId = 'comp_1'): CircuitOwner => ({
    webhookId,
    companyId,
    partition,
  });
  const until = (probeAtMs: number): CircuitTimes => ({ probeAtMs, sinceMs: 900_000 });
  const takenOver = async (partitions: number[], most = 100) =>
    (await successor.takeOver(partitions, { most, withinMs: 60_000 })).found;

  it('are read by their partitions, and one by one by their company', async () => {
    owner.opened(at('wh_1'), until(nowMs + 500));
    owner.opened(at('wh_2', 2, 'comp_2'), until(nowMs + 700));
    const first = { ...until(nowMs + 500), companyId: 'comp_1', partition: 1 };
    const second = { ...until(nowMs + 700), companyId: 'comp_2', partition: 2 };
    expect(await takenOver([1, 2, 3])).toEqual(
      new Map([
        ['wh_1', first],
        ['wh_2', second],
      ]),
    );
    expect(await takenOver([2])).toEqual(new Map([['wh_2', second]]));
    expect(await takenOver([1, 2], 1)).toHaveProperty('size', 1);
    expect(await takenOver([])).toEqual(new Map());
    expect(await successor.read('comp_2', 'wh_2')).toBe(nowMs + 700);
    expect(await successor.read('comp_1', 'wh_2')).toBeNull();
  });

  it('are unknown of a partition that cannot be read, which is not named as read', async () => {
    owner.opened(at('wh_1'), until(nowMs));
    await store.redis.set(`${prefix}circuits-of-partition:2`, 'no hash');
    const { found, read } = await successor.takeOver([1, 2, 3], { most: 100, withinMs: 60_000 });
    expect([...found.keys()]).toEqual(['wh_1']);
    expect(new Set(read)).toEqual(new Set([1, 3]));
    await expect(successor.takeOver([2], { most: 100, withinMs: 60_000 })).rejects.toThrow();
  });

  it('are read until the time is over', async () => {
    const partitions = Array.from({ length: 100 }, (_, n) => n);
    const readWithin = async (withinMs: number): Promise<number> =>
      (await successor.takeOver(partitions, { most: 100, withinMs })).read.length;
    expect(await readWithin(0)).toBe(16);
    expect(await readWithin(60_000)).toBe(100);
  });

  it('have the newest time when they open again, and are removed when they close', async () => {
    owner.opened(at('wh_1'), until(nowMs + 500));
    owner.opened(at('wh_1'), until(nowMs + 900));
    expect(await successor.read('comp_1', 'wh_1')).toBe(nowMs + 900);
    owner.closed(at('wh_1'));
    expect(await successor.read('comp_1', 'wh_1')).toBeNull();
    expect(await takenOver([1])).toEqual(new Map());
  });

  it('are listed for their company alone, with the time since when they are open', async () => {
    owner.opened(at('wh_1'), until(nowMs + 500));
    owner.opened(at('wh_2', 1, 'comp_2'), until(nowMs + 500));
    const open = { webhookId: 'wh_1', ...until(nowMs + 500) };
    expect(await successor.list('comp_1')).toEqual([open]);
    nowMs += FORGOTTEN_AFTER_MS + 500;
    expect(await successor.list('comp_1')).toEqual([]);
  });

  it('are listed up to a number', async () => {
    const fields = Array.from({ length: MAX_LISTED + 100 }, (_, n) => [
      `wh_${n}`,
      `${nowMs} ${nowMs} comp_1`,
    ]);
    await store.redis.hset(`${prefix}circuits-of-company:comp_1`, ...fields.flat());
    const found = await successor.list('comp_1');
    expect(new Set(found.map(({ webhookId }) => webhookId)).size).toBe(MAX_LISTED);
  });

  it('stay when their probe is due, and are forgotten twelve hours later', async () => {
    owner.opened(at('wh_1'), until(nowMs));
    nowMs += FORGOTTEN_AFTER_MS - 1;
    expect(await successor.read('comp_1', 'wh_1')).toBe(1_000_000);
    nowMs += 1;
    expect(await successor.read('comp_1', 'wh_1')).toBeNull();
    expect(await takenOver([1])).toEqual(new Map());
    nowMs = 1_000_000;
    // The report is not awaited. It goes over the same connection, so it arrives first.
    expect(await takenOver([1])).toEqual(new Map());
    expect(await successor.list('comp_1')).toEqual([]);
  });

  it('leave no key behind when their dispatcher has died', async () => {
    owner.opened(at('wh_1'), until(nowMs));
    await successor.read('comp_1', 'wh_1');
    for (const key of ['circuits-of-partition:1', 'circuits-of-company:comp_1']) {
      expect(await store.redis.pttl(prefix + key)).toBeGreaterThan(FORGOTTEN_AFTER_MS);
    }
  });

  it('are ignored when no dispatcher has stored them', async () => {
    const texts = [
      '',
      'x',
      '1',
      '1 2',
      'NaN 1 comp_1',
      '-1 1 comp_1',
      `${'9'.repeat(16)} 1 comp_1`,
    ];
    for (const [n, text] of texts.entries()) {
      await store.redis.hset(`${prefix}circuits-of-partition:1`, `wh_${n}`, text);
      await store.redis.hset(`${prefix}circuits-of-company:comp_1`, `wh_${n}`, text);
    }
    expect(await takenOver([1])).toEqual(new Map());
    expect(await successor.list('comp_1')).toEqual([]);
    expect(await successor.read('comp_1', 'wh_0')).toBeNull();
  });

  it('are unknown without Redis: reading rejects, writing does not', async () => {
    const away = store.connect();
    away.disconnect();
    const cutOff = createOpenCircuits(away, env.REDIS_PREFIX, () => nowMs);
    cutOff.opened(at('wh_1'), until(nowMs));
    cutOff.closed(at('wh_1'));
    await expect(cutOff.takeOver([1, 2], { most: 100, withinMs: 60_000 })).rejects.toThrow();
    await expect(cutOff.list('comp_1')).rejects.toThrow();
    await expect(cutOff.read('comp_1', 'wh_1')).rejects.toThrow();
  });
});

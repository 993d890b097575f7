import { beforeEach, describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { startStoreProxy } from '../../../../test/support/process/store-proxy.ts';
import {
  openTestedRedis,
  REDIS_KINDS,
  serversOf,
} from '../../../../test/support/stores/tested-redis.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createRunningAttempts, type RunningAttempts } from './running-attempts.ts';

const LONG_MS = 60_000;

describe.each(REDIS_KINDS)('running attempts in %s', (_kind, open) => {
  const env = createNamespace();
  const store = duringTests(open, ({ stop }) => stop());
  let owner: RunningAttempts;
  let successor: RunningAttempts;
  let round = 0;

  beforeEach(() => {
    round += 1;
    const prefix = `${env.REDIS_PREFIX}${round}:`;
    owner = createRunningAttempts(store.redis, prefix, 'owner');
    successor = createRunningAttempts(store.redis, prefix, 'successor');
  });

  /** With one, servers without replicas refuse writes. */
  async function requireReplicas(count: string): Promise<void> {
    for (const server of serversOf(store.redis)) {
      await server.config('SET', 'min-replicas-to-write', count);
    }
  }

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
    await requireReplicas('1');
    try {
      const claimed = await successor.claim(['att_1', 'att_2'], LONG_MS);
      expect(claimed).toEqual(new Set(['att_2']));
    } finally {
      await requireReplicas('0');
    }
  });

  it('are unknown without Redis: claiming rejects, announcing does not', async () => {
    const away = store.connect();
    away.disconnect();
    const cutOff = createRunningAttempts(away, env.REDIS_PREFIX, 'owner');
    cutOff.announce(['att_1'], LONG_MS);
    cutOff.withdraw(['att_1']);
    await expect(cutOff.claim(['att_1'], LONG_MS)).rejects.toThrow();
  });
});

it('An attempt that another process has announced is not claimed because the reply of Redis is late', async () => {
  const { REDIS_URL, REDIS_PREFIX } = createNamespace();
  const proxy = await startStoreProxy(REDIS_URL);
  const { redis, stop } = await openTestedRedis({ REDIS_URL: proxy.url }, () => proxy.close());
  const owner = createRunningAttempts(redis, REDIS_PREFIX, 'owner');
  const successor = createRunningAttempts(redis, REDIS_PREFIX, 'successor');
  try {
    await owner.claim(['att_1'], LONG_MS);
    proxy.freeze();
    const claiming = successor.claim(['att_1', 'att_2'], LONG_MS);
    // A claim writes, and then it reads.
    await expect(redis.ping()).rejects.toThrow('Command timed out');
    await expect(redis.ping()).rejects.toThrow('Command timed out');
    proxy.thaw();
    const thawedMs = performance.now();
    expect(await claiming).toEqual(new Set(['att_2']));
    const leftMs = await redis.pttl(`${REDIS_PREFIX}running:att_2`);
    // Its time counts from then, and not from the write two seconds before.
    const sinceMs = performance.now() - thawedMs;
    expect(leftMs).toBeGreaterThan(LONG_MS - sinceMs - 1_000);
  } finally {
    proxy.thaw();
    await stop();
  }
});

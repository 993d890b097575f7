import { beforeEach, describe, expect, it } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { RedisClient } from '@posthorn/platform/redis/connect.ts';
import { Registry } from 'prom-client';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { keysOf, REDIS_KINDS } from '../../../../test/support/stores/tested-redis.ts';
import { createRateLimits, type RateLimits } from './rate-limits.ts';

const MINUTE_MS = 60_000;

describe.each(REDIS_KINDS)('the rate limits of two gateways on %s', (_kind, open) => {
  const env = createNamespace();
  const logger = createLogger('test', 'silent');
  const store = duringTests(open, ({ stop }) => stop());
  let prefix: string;
  let nowMs: number;
  let round = 0;

  beforeEach(() => {
    round += 1;
    prefix = `${env.REDIS_PREFIX}${round}:`;
    nowMs = 29_000_000 * MINUTE_MS + round;
  });

  function gateway(connection: RedisClient = store.redis): RateLimits {
    const limits = { company: 0, visit: 0, address: 0, wrongKeys: 10 };
    const registry = new Registry();
    return createRateLimits({
      redis: connection,
      prefix,
      limits,
      countsBytes: 1_000_000,
      registry,
      logger,
      nowMs: () => nowMs,
    });
  }

  /** Returns how many of these wrong keys were allowed. */
  function send({ wrongKeys }: RateLimits, times: number, address = '192.0.2.1'): number {
    let allowed = 0;
    for (let n = 0; n < times; n += 1) {
      try {
        wrongKeys.count(address);
        allowed += 1;
      } catch {
        // Refused.
      }
    }
    return allowed;
  }

  it('are one limit, for each key apart', async () => {
    const [one, two] = [gateway(), gateway()];
    send(one, 7);
    await one.tick();
    send(two, 1);
    await two.tick();
    expect(send(two, 10)).toBe(2);
    expect(send(two, 20, '192.0.2.2')).toBe(10);
    await two.tick();
    send(one, 1);
    await one.tick();
    expect(send(one, 10)).toBe(0);
  });

  it('counts into the next minute', async () => {
    const [one, two] = [gateway(), gateway()];
    send(one, 10);
    await one.tick();
    nowMs += 1.5 * MINUTE_MS;
    send(two, 1);
    await two.tick();
    expect(send(two, 10)).toBe(4);
  });

  it('shares periodically once started, and no longer after the stop', async () => {
    const [one, two] = [gateway(), gateway()];
    one.start();
    send(one, 10);
    await eventually('the count in Redis', () => keysOf(store.redis, prefix).then((all) => all[0]));
    one.stop();
    send(two, 1);
    await two.tick();
    expect(send(two, 10)).toBe(0);
  });

  it('leaves no key in Redis for longer than two minutes', async () => {
    const one = gateway();
    send(one, 3);
    await one.tick();
    const [name = ''] = await keysOf(store.redis, prefix);
    const ttlMs = await store.redis.pttl(name);
    expect(ttlMs).toBeGreaterThan(0);
    expect(ttlMs).toBeLessThanOrEqual(2 * MINUTE_MS);
  });

  it('counts alone while Redis is away, and shares its counts when Redis is back', async () => {
    const connection = store.connect();
    await eventually('a connection', () => connection.status === 'ready');
    connection.disconnect();
    await eventually('the end', () => ['end', 'close'].includes(connection.status));
    const [one, two] = [gateway(connection), gateway()];
    send(one, 8);
    await one.tick();
    expect(send(one, 10)).toBe(2);
    await connection.connect();
    await one.tick();
    connection.disconnect();
    send(two, 1);
    await two.tick();
    expect(send(two, 10)).toBe(0);
  });
});

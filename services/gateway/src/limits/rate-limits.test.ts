import { beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Response } from 'express';
import type { Redis } from 'ioredis';
import { Registry } from 'prom-client';
import { ApiError } from '../api-error.ts';
import {
  createMissBudget,
  createRateLimits,
  type Limits,
  type MissBudget,
  type RateLimits,
} from './rate-limits.ts';

describe('rate limits', () => {
  const MINUTE_MS = 60_000;

  let nowMs: number;
  let registry: Registry;

  beforeEach(() => {
    nowMs = 29_000_000 * MINUTE_MS;
  });

  function open(limits: Partial<Limits>): RateLimits {
    registry = new Registry();
    return createRateLimits({
      // Of a client that is away, only the status is read.
      redis: { status: 'end' } as unknown as Redis,
      prefix: 't:',
      limits: { company: 0, visit: 0, address: 0, wrongKeys: 0, ...limits },
      countsBytes: 1_000_000,
      registry,
      logger: createLogger('test', 'silent'),
      nowMs: () => nowMs,
    });
  }

  interface Answered {
    refusal: ApiError | null;
    headers: Record<string, unknown>;
  }

  test('count messages that come without a request, and say when the next ones may come', () => {
    const limits = open({ company: 5 });
    expect(limits.takeMessages('comp_1', 3)).toEqual({ granted: 3, waitMs: 0 });
    const { granted, waitMs } = limits.takeMessages('comp_1', 3);
    expect(granted).toBe(2);
    expect(waitMs).toBeGreaterThan(0);
    expect(limits.takeMessages('comp_1', 1).granted).toBe(0);
    expect(send(limits).refusal?.code).toBe('rate_limited');
    expect(limits.takeMessages('comp_2', 1).granted).toBe(1);
    expect(open({}).takeMessages('comp_1', 1_000)).toEqual({ granted: 1_000, waitMs: 0 });
  });

  /** Passes one request through both limits, as the app does. */
  function send(
    { limitAddress, limitCompany }: RateLimits,
    { ip = '192.0.2.1', companyId = 'comp_1', linkId = '' } = {},
  ): Answered {
    const headers: Record<string, unknown> = {};
    // The few members of request and response that the limits use; express has no smaller type for them.
    const response = {
      locals: { caller: { companyId, ...(linkId !== '' && { portal: { linkId } }) } },
      setHeader: (name: string, value: unknown) => (headers[name] = value),
    } as unknown as Response;
    const refusal = refusalOf(() => {
      limitAddress({ ip }, response);
      limitCompany(response);
    });
    return { refusal, headers };
  }

  function refusalOf(run: () => void): ApiError | null {
    try {
      run();
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
    return null;
  }

  describe('the limit of a company', () => {
    test('counts every message of a request, and refuses all of them beyond it', async () => {
      const limits = open({ company: 10 });
      const count = (requests: number) => {
        const locals = { caller: { companyId: 'comp_1' } };
        const response = { locals, setHeader: () => undefined } as unknown as Response;
        return refusalOf(() => {
          limits.countMore(response, requests);
        });
      };
      send(limits);
      expect([count(8), count(0)]).toEqual([null, null]);
      expect(count(2)).toMatchObject({ code: 'rate_limited', headers: { 'Retry-After': '67' } });
      expect(send(limits).refusal).toBeNull();
      const counted = await registry.getSingleMetric('posthorn_rate_limit_decisions_total')?.get();
      expect(counted?.values).toContainEqual({
        labels: { scope: 'company', outcome: 'allowed' },
        value: 10,
      });
    });

    test('is shown in the headers of each response', () => {
      nowMs += 18_000;
      expect(send(open({ company: 300_000 }))).toEqual({
        refusal: null,
        headers: {
          'RateLimit-Policy': '"company";q=300000;w=60',
          RateLimit: '"company";r=299999;t=42',
        },
      });
    });

    test('throws 429 with the seconds after which a request is allowed again', () => {
      const limits = open({ company: 2 });
      send(limits);
      send(limits);
      const { refusal, headers } = send(limits);
      expect(refusal).toMatchObject({ status: 429, code: 'rate_limited' });
      expect(refusal?.headers).toEqual({ 'Retry-After': '90' });
      expect(headers.RateLimit).toBe('"company";r=0;t=90');
      nowMs += 90_000;
      expect(send(limits).refusal).toBeNull();
    });

    test('is counted for each company apart', () => {
      const limits = open({ company: 1 });
      expect(send(limits, { companyId: 'comp_1' }).refusal).toBeNull();
      expect(send(limits, { companyId: 'comp_2' }).refusal).toBeNull();
    });
  });

  test('the limit of a visit leaves the company what is left of its own', () => {
    const limits = open({ company: 3, visit: 1 });
    expect(send(limits, { linkId: 'plnk_1' }).refusal).toBeNull();
    const { refusal, headers } = send(limits, { linkId: 'plnk_1' });
    expect(refusal).toMatchObject({ status: 429, code: 'rate_limited' });
    expect(headers.RateLimit).toBe('"visit";r=0;t=120');
    expect(send(limits, { linkId: 'plnk_2' }).refusal).toBeNull();
    expect(send(limits).refusal).toBeNull();
    expect(send(limits).refusal).toMatchObject({ status: 429 });
  });

  describe('the limit of an address', () => {
    test('throws 429 whatever the company', () => {
      const limits = open({ address: 1, company: 100 });
      send(limits, { companyId: 'comp_1' });
      const { refusal, headers } = send(limits, { companyId: 'comp_2' });
      expect(refusal).toMatchObject({ status: 429, code: 'rate_limited' });
      expect(headers.RateLimit).toBe('"address";r=0;t=120');
      expect(send(limits, { ip: '192.0.2.2' }).refusal).toBeNull();
    });

    test('is shown when a smaller part of it is left than of the company’s', () => {
      const limits = open({ address: 10, company: 100 });
      expect(send(limits).headers.RateLimit).toBe('"address";r=9;t=60');
      const others = open({ address: 100, company: 10 });
      expect(send(others).headers.RateLimit).toBe('"company";r=9;t=60');
    });
  });

  describe('limits that are off', () => {
    test('refuse nothing and set no headers', () => {
      const limits = open({});
      expect(send(limits)).toEqual({ refusal: null, headers: {} });
      expect(
        refusalOf(() => {
          limits.wrongKeys.count('192.0.2.1');
        }),
      ).toBeNull();
    });
  });

  describe('wrong keys', () => {
    test('are refused with their own code when one address has sent too many', () => {
      const { wrongKeys } = open({ wrongKeys: 100 });
      const tries = Array.from({ length: 101 }, () =>
        refusalOf(() => {
          wrongKeys.count('192.0.2.1');
        }),
      );
      expect(tries.slice(0, 100).every((refusal) => refusal === null)).toBe(true);
      expect(tries[100]).toMatchObject({ status: 429, code: 'too_many_wrong_keys' });
      expect(Number(tries[100]?.headers['Retry-After'])).toBeGreaterThan(0);
      expect(() => {
        wrongKeys.count('192.0.2.2');
      }).not.toThrow();
    });

    test('do not count for the limits of address and company', () => {
      const limits = open({ wrongKeys: 5, address: 2, company: 2 });
      limits.wrongKeys.count('192.0.2.1');
      expect(send(limits).headers.RateLimit).toBe('"company";r=1;t=60');
    });
  });

  test('every decision is counted by scope and outcome', async () => {
    const limits = open({ company: 1, address: 10, wrongKeys: 1 });
    limits.wrongKeys.count(undefined);
    send(limits);
    send(limits);
    const text = await registry.metrics();
    for (const line of [
      '{scope="company",outcome="allowed"} 1',
      '{scope="company",outcome="refused"} 1',
      '{scope="address",outcome="allowed"} 2',
      '{scope="wrong_keys",outcome="allowed"} 1',
    ]) {
      expect(text).toContain(`posthorn_rate_limit_decisions_total${line}`);
    }
  });

  test('a round without Redis fails no request', async () => {
    const limits = open({ company: 10 });
    send(limits);
    await expect(limits.tick()).resolves.toBeUndefined();
  });
});

describe('miss budget', () => {
  const PER_SECOND = 200;
  const MOST_UNDER_WAY = 2_000;

  let nowMs: number;
  let budget: MissBudget;

  beforeEach(() => {
    nowMs = 1_000_000;
    budget = createMissBudget(() => nowMs);
  });

  const isFound = (found: string | null): boolean => found !== null;
  const lookUp = (address: string, found: string | null = null): Promise<string | null> =>
    budget.lookUp(address, () => Promise.resolve(found), isFound);

  /** Returns how many of so many look-ups were made before the first was refused. */
  async function misses(times: number, addressOf: (n: number) => string): Promise<number> {
    for (let n = 0; n < times; n += 1) {
      const refusal = await lookUp(addressOf(n)).catch((error: unknown) => error);
      if (!(refusal instanceof ApiError)) continue;
      expect(refusal).toMatchObject({ status: 429, code: 'too_many_wrong_keys', isDelayed: true });
      expect(refusal.headers).toHaveProperty('Retry-After');
      return n;
    }
    return times;
  }

  test('one network has half of the misses of a second, an IPv6 /48 with all its prefixes [security]', async () => {
    const inOneNetwork = (n: number): string => `2001:db8:1:${n.toString(16)}::1`;
    expect(await misses(10 * PER_SECOND, inOneNetwork)).toBe(PER_SECOND / 2);
    expect(await lookUp('2001:db8:2::1', 'key')).toBe('key');
    expect(await lookUp('192.0.2.1')).toBeNull();
  });

  test('all networks together have no more misses in a second than the budget [security]', async () => {
    const made = await misses(10 * PER_SECOND, (n) => `192.0.${n >> 8}.${n & 255}`);
    expect(made).toBeLessThanOrEqual(PER_SECOND);
    expect(made).toBeGreaterThan(PER_SECOND - 3);
    nowMs += 1_000;
    expect(await misses(50, (n) => `192.0.2.${n}`)).toBe(50);
  });

  test('look-ups that find a key use up nothing [security]', async () => {
    for (let n = 0; n < 10 * PER_SECOND; n += 1) await lookUp('192.0.2.1', 'key');
    expect(await misses(10 * PER_SECOND, () => '192.0.2.1')).toBe(PER_SECOND / 2);
  });

  /** Begins look-ups that MongoDB does not answer before `answer` or `fail` is called. */
  function begin(times: number) {
    const { promise, resolve, reject } = Promise.withResolvers<string | null>();
    const made = Array.from({ length: times }, () =>
      budget
        .lookUp('192.0.2.1', () => promise, isFound)
        .then(
          () => null,
          (error: unknown) => error,
        ),
    );
    return { made: Promise.all(made), answer: resolve, fail: reject };
  }

  test('look-ups under way are no misses: a thousand of one network find their keys [security]', async () => {
    const { made, answer } = begin(MOST_UNDER_WAY / 2);
    expect(await lookUp('198.51.100.1', 'key')).toBe('key');
    answer('key');
    expect(new Set(await made)).toEqual(new Set([null]));
    expect(await misses(10 * PER_SECOND, () => '192.0.2.1')).toBe(PER_SECOND / 2);
  });

  test('one network has half of the look-ups under way, and then gets 503 [security]', async () => {
    const { made, fail } = begin(MOST_UNDER_WAY / 2);
    await expect(lookUp('192.0.2.1', 'key')).rejects.toMatchObject({
      status: 503,
      code: 'unavailable',
      reason: 'too_many_waiting',
    });
    expect(await lookUp('198.51.100.1', 'key')).toBe('key');
    fail(new Error('MongoDB is away'));
    await made;
    expect(await lookUp('192.0.2.1', 'key')).toBe('key');
  });

  test('look-ups that were under way together count as misses in the second of their end, up to the share [security]', async () => {
    const { made, answer } = begin(MOST_UNDER_WAY / 2);
    nowMs += 1_000;
    answer(null);
    await made;
    expect(await misses(1, () => '192.0.2.1')).toBe(0);
    expect(await lookUp('198.51.100.1')).toBeNull();
    nowMs += 1_000;
    expect(await lookUp('192.0.2.1')).toBeNull();
  });
});

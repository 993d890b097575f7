import type { ForgettingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ALL_SCOPES } from '@posthorn/domain/access.ts';
import {
  apiKeyWith,
  hashOfKey,
  type KeyRecord,
  makeApiKey,
} from '@posthorn/platform/mongo/companies/companies.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Redis } from 'ioredis';
import { Registry } from 'prom-client';
import { ApiError } from '../api-error.ts';
import { createRateLimits } from '../limits/rate-limits.ts';
import {
  type Authenticate,
  createAuthentication,
  createLastUsed,
  type LastUsed,
} from './authenticate.ts';

describe('authenticate', () => {
  const keyOf = (name: string): string => apiKeyWith(Buffer.from(name.padEnd(32, 'x')));
  const recordOf = (companyId: string, changes: Partial<KeyRecord> = {}): KeyRecord => ({
    keyId: `key_of_${companyId}`,
    companyId,
    scopes: ALL_SCOPES,
    appId: null,
    expiresAtMs: null,
    isSuspended: false,
    ...changes,
  });

  /** By the hash, as the store has them. */
  let stored: Map<string, KeyRecord>;
  let used: string[];
  let lookUps: string[];
  let counted: unknown[];
  let nowMs: number;
  let tooMany: ApiError | null;
  let authenticate: Authenticate;
  let cache: ForgettingCache;
  let isFollowed: boolean;

  beforeEach(() => {
    [lookUps, counted, nowMs, tooMany] = [[], [], 1_000_000, null];
    [used, isFollowed] = [[], false];
    stored = new Map([[hashOfKey(keyOf('good')), recordOf('comp_1')]]);
    ({ authenticate, cache } = createAuthentication({
      findKey(hash) {
        lookUps.push(hash);
        return Promise.resolve(stored.get(hash) ?? null);
      },
      onUsed: (keyId) => used.push(keyId),
      wrongKeys: {
        count(address) {
          counted.push(address);
          if (tooMany) throw tooMany;
        },
        lookUp: (_address, find) => find(),
      },
      // Five thousand wrong keys, and more valid ones.
      cacheBytes: 8_000_000,
      areChangesFollowed: () => isFollowed,
      nowMs: () => nowMs,
    }));
  });

  const call = (apiKey: string | undefined, companyId?: string) =>
    authenticate({ apiKey, companyId, address: '192.0.2.1' });

  async function refusalOf(calling: Promise<unknown>): Promise<ApiError> {
    const error: unknown = await calling.catch((reason: unknown) => reason);
    if (error instanceof ApiError) return error;
    throw new Error('the call was not refused');
  }

  describe('a valid key [security]', () => {
    test('returns the caller, and is looked up once', async () => {
      expect(await call(keyOf('good'))).toEqual(recordOf('comp_1'));
      expect(await call(keyOf('good'), 'comp_1')).toEqual(recordOf('comp_1'));
      expect(lookUps).toHaveLength(1);
    });

    test('is refused for another company', async () => {
      const refusal = await refusalOf(call(keyOf('good'), 'comp_2'));
      expect([refusal.status, refusal.code]).toEqual([403, 'company_mismatch']);
      expect(counted).toEqual([]);
    });

    test('is accepted from an address that has sent too many wrong ones', async () => {
      tooMany = new ApiError('too_many_wrong_keys', 'wait');
      expect((await refusalOf(call(keyOf('bad')))).status).toBe(429);
      expect(await call(keyOf('good'))).toEqual(recordOf('comp_1'));
    });

    test('is accepted as soon as it is created, when it was never tried before', async () => {
      await refusalOf(call(keyOf('other')));
      stored.set(hashOfKey(keyOf('new')), recordOf('comp_2'));
      expect(await call(keyOf('new'))).toEqual(recordOf('comp_2'));
    });

    test('that was tried before it was created is accepted a second later', async () => {
      await refusalOf(call(keyOf('early')));
      stored.set(hashOfKey(keyOf('early')), recordOf('comp_2'));
      nowMs += 500;
      expect((await refusalOf(call(keyOf('early')))).status).toBe(401);
      nowMs += 500;
      expect(await call(keyOf('early'))).toEqual(recordOf('comp_2'));
    });

    test('is not refused because the clock was set back', async () => {
      await refusalOf(call(keyOf('early')));
      stored.set(hashOfKey(keyOf('early')), recordOf('comp_2'));
      nowMs -= 3_600_000;
      expect(await call(keyOf('early'))).toEqual(recordOf('comp_2'));
    });
  });

  describe('a wrong key [security]', () => {
    const expectRefused = async (apiKey: string | undefined) => {
      const refusal = await refusalOf(call(apiKey));
      expect([refusal.status, refusal.code, refusal.message]).toEqual([
        401,
        'unauthorized',
        'Send a valid API key in the header x-api-key, or as Authorization: Bearer.',
      ]);
      expect([counted, used]).toEqual([['192.0.2.1'], []]);
    };

    test('that is unknown is hashed, looked up, counted and refused', async () => {
      await expectRefused(keyOf('unknown'));
      expect(lookUps).toEqual([hashOfKey(keyOf('unknown'))]);
    });

    test.each([
      ['missing', undefined],
      ['empty', ''],
      ['malformed', `${keyOf('good')} `],
      ['short', 'phk_good'],
      ['very long', 'phk_'.repeat(4_000)],
      ['of another checksum', `${keyOf('good').slice(0, -6)}000000`],
      ['without a checksum', keyOf('good').slice(0, -6)],
    ])(
      'that is %s is counted and refused like any other, without a look-up',
      async (_what, key) => {
        await expectRefused(key);
        expect(lookUps).toEqual([]);
      },
    );

    test('that was made up with the right checksum is looked up', async () => {
      const { key } = makeApiKey({ newId: () => 'key_1', nowMs: () => 0 }, 'comp_1', 'name');
      await expectRefused(key);
      expect(lookUps).toEqual([hashOfKey(key)]);
    });

    test('is looked up once a second, however often it is sent, and counted each time', async () => {
      for (let n = 0; n < 50; n += 1) await refusalOf(call(keyOf('bad')));
      expect(lookUps).toHaveLength(1);
      nowMs += 1_000;
      await refusalOf(call(keyOf('bad')));
      expect(lookUps).toHaveLength(2);
      expect(counted).toHaveLength(51);
    });

    test('is dropped from the cache when five thousand others came after it', async () => {
      await refusalOf(call(keyOf('first')));
      for (let n = 0; n < 5_000; n += 1) await refusalOf(call(keyOf(String(n))));
      stored.set(hashOfKey(keyOf('first')), recordOf('comp_2'));
      expect(await call(keyOf('first'))).toEqual(recordOf('comp_2'));
    });
  });

  describe('beyond the limit of wrong keys of an address [security]', () => {
    const LIMIT = 100;

    beforeEach(async () => {
      const { wrongKeys } = createRateLimits({
        // Of a client that is away, only the status is read.
        redis: { status: 'end' } as unknown as Redis,
        prefix: 't:',
        limits: { company: 0, visit: 0, address: 0, wrongKeys: LIMIT },
        countsBytes: 1_000_000,
        registry: new Registry(),
        logger: createLogger('test', 'silent'),
        nowMs: () => nowMs,
      });
      const findKey = (hash: string) => {
        lookUps.push(hash);
        return Promise.resolve(stored.get(hash) ?? null);
      };
      ({ authenticate } = createAuthentication({
        findKey,
        onUsed: () => undefined,
        wrongKeys,
        cacheBytes: 8_000_000,
        areChangesFollowed: () => false,
        nowMs: () => nowMs,
      }));
      await call(keyOf('good'));
      for (let n = 0; n < LIMIT; n += 1) await refusalOf(call(keyOf(`one-${n}`)));
      lookUps = [];
      nowMs += 1_000;
    });

    const statusOf = async (name: string) => (await refusalOf(call(keyOf(name)))).status;

    test('five unknown keys are looked up in each second, and all get 429', async () => {
      for (let second = 1; second <= 3; second += 1) {
        for (let n = 0; n < 200; n += 1) expect(await statusOf(`more-${second}-${n}`)).toBe(429);
        expect(lookUps).toHaveLength(5 * second);
        nowMs += 1_000;
      }
    });

    test('a key that was valid before passes, from the cache and after it', async () => {
      for (let n = 0; n < 10; n += 1) await statusOf(`more-${n}`);
      expect(await call(keyOf('good'))).toEqual(recordOf('comp_1'));
      nowMs += 2_000;
      for (let n = 0; n < 10; n += 1) await statusOf(`other-${n}`);
      expect(await call(keyOf('good'))).toEqual(recordOf('comp_1'));
    });

    test('of all addresses together no more unknown keys are looked up than the budget, and known ones pass', async () => {
      let address = 0;
      for (let n = 0; n < 1_000; n += 1) {
        address += 1;
        const from = {
          apiKey: keyOf(`guess-${n}`),
          address: `2001:db8:${address.toString(16)}::1`,
        };
        await refusalOf(authenticate(from));
      }
      expect(lookUps.length).toBeLessThanOrEqual(200);
      const late = { apiKey: keyOf('late'), address: '2001:db8:ffff::1' };
      const refusal = await refusalOf(authenticate(late));
      expect([refusal.status, refusal.code]).toEqual([429, 'too_many_wrong_keys']);
      nowMs += 100;
      expect(await call(keyOf('good'))).toEqual(recordOf('comp_1'));
      nowMs += 1_000;
      expect((await refusalOf(authenticate(late))).status).toBe(401);
    });

    test('another address is not affected', async () => {
      for (let n = 0; n < 10; n += 1) await statusOf(`more-${n}`);
      const other = { apiKey: keyOf('x'), companyId: undefined, address: '192.0.2.2' };
      expect((await refusalOf(authenticate(other))).status).toBe(401);
    });
  });

  test('a key that was dropped from the cache is looked up again, and refused when it was revoked [security]', async () => {
    await call(keyOf('good'));
    stored.clear();
    expect(await call(keyOf('good'))).toEqual(recordOf('comp_1'));
    cache.forget(hashOfKey(keyOf('good')));
    await expect(call(keyOf('good'))).rejects.toMatchObject({ status: 401 });
  });

  test('an empty companyid counts as none [security]', async () => {
    expect(await call(keyOf('good'), '')).toEqual(recordOf('comp_1'));
  });

  test('an expired key is refused from its time on, and is counted as wrong [security]', async () => {
    stored.set(hashOfKey(keyOf('ends')), recordOf('comp_1', { expiresAtMs: nowMs + 500 }));
    expect(await call(keyOf('ends'))).toMatchObject({ companyId: 'comp_1' });
    nowMs += 500;
    expect((await refusalOf(call(keyOf('ends')))).status).toBe(401);
    expect(counted).toHaveLength(1);
  });

  test('each use of a valid key is noted [security]', async () => {
    await call(keyOf('good'));
    await call(keyOf('good'));
    await refusalOf(call(keyOf('good'), 'comp_2'));
    expect(used).toEqual(['key_of_comp_1', 'key_of_comp_1']);
  });

  test('a key of a suspended company is refused, and counts neither as used nor as wrong [security]', async () => {
    stored.set(hashOfKey(keyOf('held')), recordOf('comp_1', { isSuspended: true }));
    const refusal = await refusalOf(call(keyOf('held'), 'comp_1'));
    expect([refusal.status, refusal.code]).toEqual([403, 'company_suspended']);
    expect([used, counted]).toEqual([[], []]);
    expect((await refusalOf(call(keyOf('held'), 'comp_2'))).code).toBe('company_mismatch');
  });
});

describe('last used', () => {
  let nowMs: number;
  let written: [string, number][][];
  let isAway: boolean;
  /** What another gateway has stored. */
  let storedMs: number | null;
  let lastUsed: LastUsed;

  beforeEach(() => {
    [nowMs, written, isAway, storedMs] = [1_000_000, [], false, null];
    lastUsed = createLastUsed({
      write(usedAtMs) {
        if (isAway) return Promise.reject(new Error('MongoDB is away'));
        written.push([...usedAtMs]);
        return Promise.resolve(
          new Map([...usedAtMs].map(([id, atMs]) => [id, storedMs ?? atMs] as const)),
        );
      },
      nowMs: () => nowMs,
      logger: { warn: () => undefined },
    });
  });

  test('the last use of a key is written once a minute, however often it is used', async () => {
    for (let second = 0; second < 120; second += 1) {
      lastUsed.note('key_1');
      if (second % 5 === 0) await lastUsed.tick();
      nowMs += 1_000;
    }
    expect(written).toEqual([[['key_1', 1_000_000]], [['key_1', 1_060_000]]]);
  });

  test('the use of a key is written after its minute even when it is not used again', async () => {
    lastUsed.note('key_1');
    await lastUsed.tick();
    nowMs += 1_000;
    lastUsed.note('key_1');
    await lastUsed.tick();
    nowMs += 60_000;
    await lastUsed.tick();
    expect(written).toEqual([[['key_1', 1_000_000]], [['key_1', 1_001_000]]]);
  });

  test('a key that another gateway has written waits for a minute from then', async () => {
    lastUsed.note('key_1');
    storedMs = nowMs - 40_000;
    await lastUsed.tick();
    storedMs = null;
    nowMs += 19_999;
    lastUsed.note('key_1');
    await lastUsed.tick();
    expect(written).toHaveLength(1);
    nowMs += 1;
    await lastUsed.tick();
    expect(written[1]).toEqual([['key_1', 1_019_999]]);
  });

  test('all times are written at once when 20,000 keys are used, also those of keys of this minute', async () => {
    const noteAll = (): void => {
      for (let n = 0; n < 20_000; n += 1) lastUsed.note(`key_${n}`);
    };
    lastUsed.note('key_0');
    await lastUsed.tick();
    nowMs += 1;
    noteAll();
    await lastUsed.tick();
    expect(written.map((times) => times.length)).toEqual([1, 20_000]);
    isAway = true;
    noteAll();
    await lastUsed.tick();
    isAway = false;
    lastUsed.note('key_20000');
    await lastUsed.tick();
    expect(written[2]).toHaveLength(20_001);
  });

  test('a use that could not be written is written in the next round, and none without a use', async () => {
    lastUsed.note('key_1');
    isAway = true;
    await lastUsed.tick();
    isAway = false;
    await lastUsed.tick();
    await lastUsed.tick();
    expect(written).toEqual([[['key_1', 1_000_000]]]);
  });
});

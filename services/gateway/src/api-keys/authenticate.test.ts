import { beforeEach, describe, expect, test } from '@jest/globals';
import { hashOfKey } from '@posthorn/platform/mongo/companies/make-api-key.ts';
import { createAuthentication, type Authenticate } from './authenticate.ts';
import { ApiError } from '../http/api-error.ts';

/** Hash → company, as the store has it. */
let stored: Map<string, string>;
let lookUps: string[];
let counted: unknown[];
let nowMs: number;
let tooMany: ApiError | null;
let authenticate: Authenticate;
let forget: (keyHash: string) => void;

beforeEach(() => {
  [lookUps, counted, nowMs, tooMany] = [[], [], 1_000_000, null];
  stored = new Map([[hashOfKey('phk_good'), 'comp_1']]);
  ({ authenticate, forget } = createAuthentication({
    companyOfKey(hash) {
      lookUps.push(hash);
      return Promise.resolve(stored.get(hash) ?? null);
    },
    wrongKeys: {
      count(address) {
        counted.push(address);
        if (tooMany) throw tooMany;
      },
    },
    // Ten thousand wrong keys, and half as many valid ones.
    cacheBytes: 4_000_000,
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

describe('a valid key', () => {
  test('returns the caller, and is looked up once', async () => {
    expect(await call('phk_good')).toEqual({ companyId: 'comp_1' });
    expect(await call('phk_good', 'comp_1')).toEqual({ companyId: 'comp_1' });
    expect(lookUps).toHaveLength(1);
  });

  test('is refused for another company', async () => {
    const refusal = await refusalOf(call('phk_good', 'comp_2'));
    expect([refusal.status, refusal.code]).toEqual([403, 'company_mismatch']);
    expect(counted).toEqual([]);
  });

  test('is accepted from an address that has sent too many wrong ones', async () => {
    tooMany = new ApiError(429, 'too_many_wrong_keys', 'wait');
    expect((await refusalOf(call('phk_bad'))).status).toBe(429);
    expect(await call('phk_good')).toEqual({ companyId: 'comp_1' });
  });

  test('is accepted as soon as it is created, when it was never tried before', async () => {
    await refusalOf(call('phk_other'));
    stored.set(hashOfKey('phk_new'), 'comp_2');
    expect(await call('phk_new')).toEqual({ companyId: 'comp_2' });
  });

  test('that was tried before it was created is accepted a second later', async () => {
    await refusalOf(call('phk_early'));
    stored.set(hashOfKey('phk_early'), 'comp_2');
    nowMs += 500;
    expect((await refusalOf(call('phk_early'))).status).toBe(401);
    nowMs += 500;
    expect(await call('phk_early')).toEqual({ companyId: 'comp_2' });
  });

  test('is not refused because the clock was set back', async () => {
    await refusalOf(call('phk_early'));
    stored.set(hashOfKey('phk_early'), 'comp_2');
    nowMs -= 3_600_000;
    expect(await call('phk_early')).toEqual({ companyId: 'comp_2' });
  });
});

describe('a wrong key', () => {
  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['malformed', 'phk_good '],
    ['unknown', `phk_${'x'.repeat(43)}`],
    ['very long', 'phk_'.repeat(4_000)],
  ])(
    'that is %s is hashed, looked up, counted and refused like any other',
    async (_what, apiKey) => {
      const refusal = await refusalOf(call(apiKey));
      expect([refusal.status, refusal.code, refusal.message]).toEqual([
        401,
        'unauthorized',
        'Send a valid API key in the header x-api-key.',
      ]);
      expect(lookUps).toEqual([hashOfKey(apiKey ?? '')]);
      expect(counted).toEqual(['192.0.2.1']);
    },
  );

  test('is looked up once a second, however often it is sent, and counted each time', async () => {
    for (let n = 0; n < 50; n += 1) await refusalOf(call('phk_bad'));
    expect(lookUps).toHaveLength(1);
    nowMs += 1_000;
    await refusalOf(call('phk_bad'));
    expect(lookUps).toHaveLength(2);
    expect(counted).toHaveLength(51);
  });

  test('is dropped from the cache when ten thousand others came after it', async () => {
    await refusalOf(call('phk_first'));
    for (let n = 0; n < 10_000; n += 1) await refusalOf(call(`phk_${n}`));
    stored.set(hashOfKey('phk_first'), 'comp_2');
    expect(await call('phk_first')).toEqual({ companyId: 'comp_2' });
  });
});

test('a key that was dropped from the cache is looked up again, and refused when it was revoked', async () => {
  await call('phk_good');
  stored.clear();
  expect(await call('phk_good')).toEqual({ companyId: 'comp_1' });
  forget(hashOfKey('phk_good'));
  await expect(call('phk_good')).rejects.toMatchObject({ status: 401 });
});

test('an empty companyid counts as none', async () => {
  expect(await call('phk_good', '')).toEqual({ companyId: 'comp_1' });
});

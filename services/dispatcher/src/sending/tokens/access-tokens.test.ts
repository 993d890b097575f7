import { beforeEach, describe, expect, test } from '@jest/globals';
import type { TokenAnswer } from '@posthorn/domain/request/access-token.ts';
import type { OAuth2Client } from '@posthorn/domain/webhook.ts';
import { createAccessTokens, type AccessTokens } from './access-tokens.ts';

const CLIENT: OAuth2Client = {
  method: 'oauth2',
  tokenUrl: 'https://login.example.com/token',
  clientId: 'c',
  clientSecret: 's',
  scope: null,
  audience: null,
  clientAuthentication: 'basic',
};
const EPOCH_MS = 1_700_000_000_000;
const token = (value: string): TokenAnswer => ({ kind: 'token', value, usableForMs: 60_000 });

let nowMs: number;
let asked: OAuth2Client[];
let keys: string[];
let answerWith: (nth: number) => Promise<TokenAnswer | null>;
let tokens: AccessTokens;
/** Until the pace allows a request. */
let pacedMs: number;

beforeEach(() => {
  [nowMs, asked, keys] = [1, [], []];
  answerWith = (nth) => Promise.resolve(token(`t${nth}`));
  pacedMs = 0;
  tokens = open(1_000_000);
});

function open(cacheBytes: number): AccessTokens {
  return createAccessTokens({
    requestToken: (client, key) => {
      asked.push(client);
      keys.push(key);
      return answerWith(asked.length);
    },
    pace: (companyId, tokenUrl) => {
      expect([companyId, tokenUrl]).toEqual([expect.any(String), expect.stringMatching(/^https:/)]);
      return pacedMs;
    },
    cacheBytes,
    firstRetryMs: 5_000,
    nowMs: () => EPOCH_MS + nowMs,
    monotonicMs: () => nowMs,
  });
}

async function get(changed: Partial<OAuth2Client> = {}, companyId = 'comp_a') {
  const shared = await tokens.get(companyId, { ...CLIENT, ...changed });
  return shared?.answer.kind === 'token' ? shared.answer.value : (shared?.answer ?? null);
}

describe('an access token', () => {
  test('is shared by attempts that need it at the same time, and kept while it is usable', async () => {
    expect(await Promise.all([get(), get(), get()])).toEqual(['t1', 't1', 't1']);
    nowMs += 59_999;
    expect(await get()).toBe('t1');
    nowMs += 2;
    expect(await get()).toBe('t2');
    expect(asked).toHaveLength(2);
  });

  test.each<[Partial<OAuth2Client>, string]>([
    [{}, 'comp_b'],
    [{ tokenUrl: 'https://login.example.com/other' }, 'comp_a'],
    [{ clientId: 'd' }, 'comp_a'],
    [{ clientSecret: 'new' }, 'comp_a'],
    [{ scope: 'a' }, 'comp_a'],
    [{ audience: 'a' }, 'comp_a'],
    [{ clientAuthentication: 'post' }, 'comp_a'],
  ])('is not used for %j of %s', async (changed, companyId) => {
    expect(await get()).toBe('t1');
    expect(await get(changed, companyId)).toBe('t2');
  });

  test('is requested with the key of its credentials, which chooses the HTTP client', async () => {
    for (const clientId of ['a', 'b', 'c']) await get({ clientId });
    expect(new Set(keys).size).toBe(3);
  });

  test('that an endpoint refuses is requested again once, however many attempts had it', async () => {
    const shared = await Promise.all([1, 2, 3].map(() => tokens.get('comp_a', CLIENT)));
    shared[0]?.refuse();
    expect(await get()).toBe('t2');
    shared[1]?.refuse();
    shared[2]?.refuse();
    expect(await get()).toBe('t2');
  });

  test('counts with its length, and the cache holds no more than its bytes', async () => {
    answerWith = (nth) => Promise.resolve(token(`${nth}`.repeat(1_000)));
    tokens = open(4_000);
    for (const clientId of ['a', 'b', 'c', 'd']) await get({ clientId });
    expect(tokens.usedBytes()).toBeGreaterThan(2_000);
    expect(tokens.usedBytes()).toBeLessThanOrEqual(4_000);
  });
});

describe('a token whose server may not be asked yet', () => {
  test('is requested by the attempts that come back at the turn they were given', async () => {
    pacedMs = 5_100;
    const later = { kind: 'later', turnAtMs: EPOCH_MS + nowMs + 5_100 };
    expect([await get(), await get()]).toEqual([later, later]);
    nowMs += 1_000;
    expect(await get()).toEqual(later);
    expect(asked).toEqual([]);
    nowMs += 4_100;
    pacedMs = 0;
    expect(await Promise.all([get(), get()])).toEqual(['t1', 't1']);
  });

  test('is sent without asking while it is known', async () => {
    await get();
    pacedMs = 5_100;
    expect(await get()).toBe('t1');
  });
});

describe('a failure', () => {
  const FAILED: TokenAnswer = { kind: 'failed', reason: 'the token server answered 503' };

  test('is the answer to all attempts for a quarter of a second', async () => {
    answerWith = () => Promise.resolve(FAILED);
    expect([await get(), await get()]).toEqual([FAILED, FAILED]);
    expect(asked).toHaveLength(1);
    nowMs += 251;
    answerWith = (nth) => Promise.resolve(token(`t${nth}`));
    expect(await get()).toBe('t2');
  });

  test.each([
    [3_000, 3_000],
    [15_000, 4_000],
  ])(
    'that took %d ms is the answer for %d ms, and not to its own retry',
    async (tookMs, keptMs) => {
      answerWith = () => {
        nowMs += tookMs;
        return Promise.resolve(FAILED);
      };
      await get();
      nowMs += keptMs - 1;
      expect(await get()).toEqual(FAILED);
      expect(asked).toHaveLength(1);
      nowMs += 2;
      await get();
      expect(asked).toHaveLength(2);
    },
  );

  test('of the egress proxy is not kept', async () => {
    answerWith = () => Promise.resolve(null);
    expect(await Promise.all([get(), get()])).toEqual([null, null]);
    answerWith = (nth) => Promise.resolve(token(`t${nth}`));
    expect(await get()).toBe('t2');
  });
});

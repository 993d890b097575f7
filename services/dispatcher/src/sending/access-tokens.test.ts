import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { OAUTH2 } from '../../../../test/support/samples/sample-webhook.ts';
import { type EgressPolicy, STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import type { TokenAnswer } from '@posthorn/domain/request/access-token.ts';
import type { OAuth2Client } from '@posthorn/domain/webhook.ts';
import { gzipSync } from 'node:zlib';
import {
  type ConnectProxy,
  startConnectProxy,
} from '../../../../test/support/receivers/connect-proxy.ts';
import { type Receiver, startReceiver } from '../../../../test/support/receivers/receiver.ts';
import {
  type AccessTokens,
  createAccessTokens,
  createRequestToken,
  createTokenPace,
  type PaceTokenRequest,
  type TokenResult,
} from './access-tokens.ts';
import type { Connections } from './connect/connections.ts';
import { openConnections } from '../../../../test/support/process/lone-sender.ts';
import { createProxy } from './connect/egress-proxy.ts';
import { createHostResolver } from './connect/resolve-host.ts';
import { createDeadlineSweep, type DeadlineSweep } from './send-webhook.ts';

describe('access tokens', () => {
  const CLIENT = OAUTH2;
  const EPOCH_MS = 1_700_000_000_000;
  const token = (value: string): TokenAnswer => ({ kind: 'token', value, usableForMs: 60_000 });

  let nowMs: number;
  let asked: OAuth2Client[];
  let answerWith: (nth: number) => Promise<TokenAnswer | null>;
  let tokens: AccessTokens;
  /** Until the pace allows a request. */
  let pacedMs: number;

  beforeEach(() => {
    [nowMs, asked] = [1, []];
    answerWith = (nth) => Promise.resolve(token(`t${nth}`));
    pacedMs = 0;
    tokens = open(1_000_000);
  });

  function open(cacheBytes: number): AccessTokens {
    return createAccessTokens({
      requestToken: (client) => {
        asked.push(client);
        return answerWith(asked.length);
      },
      pace: (companyId, tokenUrl) => {
        expect([companyId, tokenUrl]).toEqual([
          expect.any(String),
          expect.stringMatching(/^https:/),
        ]);
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

  describe('an access token [security]', () => {
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

  describe('a token whose server may not be asked yet [security]', () => {
    test('is requested by the attempts that come back at the reservation they were given', async () => {
      pacedMs = 5_100;
      const later = { kind: 'later', reservedAtMs: EPOCH_MS + nowMs + 5_100 };
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

  describe('a failure [security]', () => {
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
});

describe('request token', () => {
  const OPEN = { ...STRICT_EGRESS, allowLoopback: true, allowHttp: true };
  const LIMITS = { connectTimeoutMs: 5_000, answerTimeoutMs: 5_000, probeTimeoutMs: 5_000 };

  let nowMs: number;
  let server: Receiver;
  let opened: Connections[];
  let deadlines: DeadlineSweep;
  let results: TokenResult[];

  beforeEach(async () => {
    [nowMs, opened, results] = [0, [], []];
    deadlines = createDeadlineSweep(() => nowMs);
    server = await startReceiver();
  });
  afterEach(async () => {
    deadlines.stop();
    await Promise.all(opened.map((connections) => connections.destroy()));
    await server.close();
  });

  function ask(tokenUrl: string, policy: EgressPolicy = OPEN, proxy: ConnectProxy | null = null) {
    const access = { tls: null, target: 'name' as const, ...LIMITS, onResult: () => undefined };
    const connections = openConnections({
      policy,
      hosts: createHostResolver({ maxBytes: 100_000 }),
      proxy: proxy && createProxy({ url: proxy.url, ...access }),
    });
    opened.push(connections);
    const client: OAuth2Client = {
      method: 'oauth2',
      tokenUrl,
      clientId: 'c',
      clientSecret: 's',
      scope: 'orders',
      audience: null,
      clientAuthentication: 'basic',
    };
    return createRequestToken({
      agent: connections.agentOf(null),
      deadlines,
      timeoutMs: 1_000,
      monotonicMs: () => nowMs,
      userAgent: 'Posthorn/1',
      onResult: (result) => results.push(result),
    })(client);
  }

  const failed = (reason: string) => ({ kind: 'failed', reason });

  describe('a token request [security]', () => {
    test('is a POST of the form to the path and query of the token server', async () => {
      const value = 'x'.repeat(8_192);
      server.answerWith((response) => {
        response.end(JSON.stringify({ access_token: value, token_type: 'Bearer', expires_in: 60 }));
      });
      expect(await ask(`${server.url}/token?a=b`)).toEqual({
        kind: 'token',
        value,
        usableForMs: 45_000,
      });
      const [got] = server.received;
      expect([got?.method, got?.path]).toEqual(['POST', '/hook/token?a=b']);
      expect(got?.body.toString()).toBe('grant_type=client_credentials&scope=orders');
      expect(got?.headers).toMatchObject({
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${Buffer.from('c:s').toString('base64')}`,
        'user-agent': 'Posthorn/1',
      });
      expect(results).toEqual(['token']);
    });

    test('reads an answer that is compressed although no compression was asked for', async () => {
      const body = JSON.stringify({ access_token: 't', token_type: 'Bearer', expires_in: 60 });
      server.answerWith((response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(body));
      });
      expect(await ask(server.url)).toMatchObject({ kind: 'token', value: 't' });
      expect(server.received[0]?.headers['accept-encoding']).toBe('identity');
    });

    test('that is redirected fails, and its secret goes nowhere else', async () => {
      server.answerWith((response) => {
        response.writeHead(307, { location: `${server.url}/elsewhere` }).end();
      });
      expect(await ask(server.url)).toEqual(failed('the token server answered 307'));
      expect(server.received).toHaveLength(1);
      expect(results).toEqual(['failed']);
    });

    test('does not read an answer that has no end', async () => {
      server.answerWith((response) => {
        const more = (): void => {
          while (response.write('{'.repeat(16_384)));
        };
        response.on('drain', more);
        more();
      });
      expect(await ask(server.url)).toEqual(
        failed('the token server did not answer with a JSON object'),
      );
    });

    test('fails when no answer comes in time', async () => {
      server.answerWith(() => {
        nowMs += 1_001;
        deadlines.tick();
      });
      expect(await ask(server.url)).toEqual(failed('no answer from the token server: timeout'));
    });

    test('fails when nobody listens', async () => {
      const { url } = server;
      await server.close();
      expect(await ask(url)).toEqual(failed('no answer from the token server: connect_error'));
      server = await startReceiver();
    });

    test.each([
      ['a refused address', { ...OPEN, allowLoopback: false }],
      ['plain http', { ...OPEN, allowHttp: false }],
      ['a port', { ...OPEN, allowPorts: [443] }],
    ])('does not go where deliveries may not go: %s', async (_what, policy) => {
      expect(await ask(server.url, policy)).toEqual(
        failed('no answer from the token server: egress_blocked'),
      );
      expect(server.received).toEqual([]);
    });
  });

  describe('behind an egress proxy [security]', () => {
    let proxy: ConnectProxy;
    beforeEach(async () => {
      proxy = await startConnectProxy();
    });
    afterEach(() => proxy.close());

    test('a token request goes through it', async () => {
      proxy.behave({ kind: 'tunnel', port: Number(new URL(server.url).port) });
      server.answerWith((response) => response.writeHead(400).end('{"error":"invalid_scope"}'));
      const answer = await ask('http://login.example.com/token', OPEN, proxy);
      expect(answer).toEqual(failed('the token server answered 400: invalid_scope'));
      expect(proxy.asked).toEqual(['login.example.com:80']);
    });

    test('its faults are no failure of the token server', async () => {
      proxy.behave({ kind: 'answer', status: 407 });
      expect(await ask('http://login.example.com/token', OPEN, proxy)).toBeNull();
      expect(results).toEqual(['fault']);
    });
  });
});

describe('token pace', () => {
  const URL_A = 'https://a.example.com/token';

  let nowMs: number;
  let pace: PaceTokenRequest;

  beforeEach(() => {
    nowMs = 1;
    pace = createTokenPace({ perSecond: 10, monotonicMs: () => nowMs });
  });

  /** Asks for this many requests at once. Returns how many may be made. */
  function ask(count: number, tokenUrl = URL_A, companyId = 'comp_a'): number {
    return Array.from({ length: count }, () => pace(companyId, tokenUrl)).filter((ms) => ms === 0)
      .length;
  }

  describe('token requests of one company to one host [security]', () => {
    test('are made up to the limit at once, and then as time passes', () => {
      expect(ask(100)).toBe(10);
      nowMs += 500;
      expect(ask(100)).toBe(5);
      nowMs += 60_000;
      expect(ask(100)).toBe(10);
    });

    test('above the limit get reservations with the same distance, from five seconds on', () => {
      ask(10);
      expect([pace('comp_a', URL_A), pace('comp_a', URL_A)]).toEqual([5_100, 5_200]);
      nowMs += 5_000;
      expect(pace('comp_a', URL_A)).toBe(0);
    });

    test.each(['https://a.example.com:8443/other?x=1', 'https://A.example.com./token'])(
      'are counted together with those to %s',
      (tokenUrl) => {
        ask(10);
        expect(ask(1, tokenUrl)).toBe(0);
      },
    );

    test('take nothing from other hosts and other companies', () => {
      ask(100);
      expect(ask(10, 'https://b.example.com/token')).toBe(10);
      expect(ask(10, URL_A, 'comp_b')).toBe(10);
    });

    test('have no limit unless one is set', () => {
      pace = createTokenPace({ perSecond: 0, monotonicMs: () => nowMs });
      expect(ask(1_000)).toBe(1_000);
    });
  });
});

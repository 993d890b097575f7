import { describe, expect, jest, test } from '@jest/globals';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sampleSigningKey } from '../../../test/support/samples/sample-signing-key.ts';
import {
  asymmetricSignature,
  keyPairSignerOf,
  publicJwkOf,
  type SigningKey,
} from '../../domain/src/request/signature.ts';
import { verify, type VerifiedEvent } from './index.ts';

const [FIRST, SECOND, STRANGE] = [1, 2, 3].map((n) => sampleSigningKey(n)) as [
  SigningKey,
  SigningKey,
  SigningKey,
];
const START_MS = 1_700_000_000_000;
const BODY = '{"order":17}';

/** What WebCrypto and `Response` work with; the tests advance `setTimeout` only. */
const REAL = ['nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'] as const;

let addresses = 0;

/** A sender with public keys at an address of its own, whose requests are counted, and a clock. */
function createSender(answer: () => Response | Promise<Response>) {
  addresses += 1;
  const jwksUrl = `https://sender-${addresses}.example/keys`;
  const sender = { requests: 0, nowMs: START_MS, answer };
  const options = {
    jwksUrl,
    toleranceSeconds: Infinity,
    nowMs: () => sender.nowMs,
    fetch: async () => {
      sender.requests += 1;
      return sender.answer();
    },
  };
  return Object.assign(sender, {
    /** Verifies a delivery that these keys sign. */
    verify: (...keys: SigningKey[]): Promise<VerifiedEvent> =>
      verify({ ...options, body: BODY, headers: signedBy(keys) }),
  });
}

function signedBy(keys: readonly SigningKey[]): Record<string, string> {
  const payload = Buffer.from(BODY);
  const signed = { messageId: 'msg_1', timestampSeconds: START_MS / 1_000, payload };
  const signatures = keys.map((key) =>
    asymmetricSignature(keyPairSignerOf({ current: key, previous: null }).standard, signed),
  );
  return {
    'webhook-id': signed.messageId,
    'webhook-timestamp': String(signed.timestampSeconds),
    'webhook-signature': signatures.join(' '),
  };
}

const published =
  (keys: readonly unknown[], cacheControl = 'public, max-age=300') =>
  (): Response =>
    Response.json({ keys }, { headers: { 'cache-control': cacheControl } });

const jwks = (...keys: SigningKey[]) => published(keys.map(publicJwkOf));

const refused = (reason: string) => ({ name: 'VerifyError', reason });

describe('a delivery with v1a', () => {
  test('is verified by a published key, of which one is enough', async () => {
    const sender = createSender(jwks(SECOND, FIRST));
    expect((await sender.verify(FIRST)).payload).toEqual({ order: 17 });
    expect((await sender.verify(STRANGE, SECOND)).id).toBe('msg_1');
    expect(sender.requests).toBe(1);
  });

  test('is refused by an unknown key, and when something was changed [security]', async () => {
    const sender = createSender(jwks(FIRST));
    await expect(sender.verify(STRANGE)).rejects.toMatchObject(refused('no_match'));
    const headers = { ...signedBy([FIRST]), 'webhook-id': 'msg_2' };
    const input = { body: BODY, headers, jwksUrl: 'https://changed.example/keys' };
    const options = { toleranceSeconds: Infinity, fetch: () => Promise.resolve(jwks(FIRST)()) };
    await expect(verify({ ...input, ...options })).rejects.toMatchObject(refused('no_match'));
  });

  test('asks for no keys when it has only v1 signatures', async () => {
    const sender = createSender(jwks(FIRST));
    await expect(sender.verify()).rejects.toMatchObject(refused('missing_header'));
    const headers = { ...signedBy([]), 'webhook-signature': 'v1,AAAA' };
    const fetch = (): never => {
      throw new Error('asked');
    };
    const jwksUrl = 'https://unasked.example/keys';
    const input = { body: BODY, headers, jwksUrl, fetch, toleranceSeconds: Infinity };
    await expect(verify(input)).rejects.toMatchObject(refused('no_match'));
  });
});

describe('the keys', () => {
  test.each([
    ['max-age', 'public, max-age=300', 300],
    ['a minute with a shorter max-age', 'max-age=5', 60],
    ['a minute without Cache-Control', '', 60],
    ['a day with a longer max-age', 'max-age=31536000', 86_400],
  ])('are kept for %s', async (_which, cacheControl, seconds) => {
    const sender = createSender(published([publicJwkOf(FIRST)], cacheControl));
    await sender.verify(FIRST);
    sender.nowMs += seconds * 1_000 - 1;
    await sender.verify(FIRST);
    expect(sender.requests).toBe(1);
    sender.nowMs += 1;
    await sender.verify(FIRST);
    expect(sender.requests).toBe(2);
  });

  test('are read again when the clock was set back', async () => {
    const sender = createSender(jwks(FIRST));
    await sender.verify(FIRST);
    sender.nowMs -= 1;
    await sender.verify(FIRST);
    expect(sender.requests).toBe(2);
  });

  test('are read again for an unknown key, at most every 10 s [security]', async () => {
    const sender = createSender(jwks(FIRST));
    await sender.verify(FIRST);
    sender.answer = jwks(SECOND, FIRST);
    sender.nowMs += 9_999;
    await expect(sender.verify(SECOND)).rejects.toMatchObject(refused('no_match'));
    expect(sender.requests).toBe(1);
    sender.nowMs += 1;
    await sender.verify(SECOND);
    expect(sender.requests).toBe(2);
    const strangers = Array.from({ length: 20 }, () =>
      expect(sender.verify(STRANGE)).rejects.toMatchObject(refused('no_match')),
    );
    await Promise.all(strangers);
    expect(sender.requests).toBe(2);
  });

  test('are read once for concurrent verifications', async () => {
    const sender = createSender(jwks(FIRST));
    await Promise.all(Array.from({ length: 50 }, () => sender.verify(FIRST)));
    sender.nowMs += 20_000;
    sender.answer = jwks(SECOND);
    await Promise.all(Array.from({ length: 50 }, () => sender.verify(SECOND)));
    expect(sender.requests).toBe(2);
  });

  test('are read anew when a request for them never ends', async () => {
    jest.useFakeTimers({ doNotFake: [...REAL] });
    const asked = Promise.withResolvers<undefined>();
    const sender = createSender(() => {
      asked.resolve(undefined);
      return new Promise(() => undefined);
    });
    const waiting = expect(sender.verify(FIRST)).rejects.toMatchObject(refused('keys_unavailable'));
    await asked.promise;
    sender.answer = jwks(FIRST);
    sender.nowMs += 5_000;
    await sender.verify(FIRST);
    jest.advanceTimersByTime(5_000);
    await waiting;
    jest.useRealTimers();
  });

  test.each<[string, () => Response | Promise<Response>]>([
    ['an error', () => Promise.reject(new TypeError('fetch failed'))],
    ['503', () => new Response('', { status: 503 })],
    ['a redirect', () => Response.redirect('https://elsewhere.example/keys', 302)],
    ['no JSON', () => new Response('keys')],
    ['no JWK Set', () => Response.json({ keys: null })],
    ['more than 64 KiB', () => new Response(' '.repeat(65_536) + '{"keys":[]}')],
  ])('are unavailable for a second after %s', async (_which, answer) => {
    const sender = createSender(answer);
    await expect(sender.verify(FIRST)).rejects.toMatchObject(refused('keys_unavailable'));
    sender.answer = jwks(FIRST);
    sender.nowMs += 999;
    await expect(sender.verify(FIRST)).rejects.toMatchObject(refused('keys_unavailable'));
    expect(sender.requests).toBe(1);
    sender.nowMs += 1;
    await sender.verify(FIRST);
  });

  test('of other kinds are passed over', async () => {
    const others = [null, 'key', { kty: 'RSA' }, { crv: 'Ed25519' }, { crv: 'Ed25519', x: 'AAAA' }];
    const sender = createSender(published([...others, publicJwkOf(FIRST)]));
    await sender.verify(FIRST);
  });

  test('are read over http from this machine, and a redirect is not followed [security]', async () => {
    const paths: (string | undefined)[] = [];
    const answers: Record<string, (response: ServerResponse) => void> = {
      '/keys': (response) => response.end(JSON.stringify({ keys: [publicJwkOf(FIRST)] })),
      '/moved': (response) => response.writeHead(302, { location: '/keys' }).end(),
    };
    const server = createServer(({ url = '' }, response) => {
      paths.push(url);
      answers[url]?.(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const options = { body: BODY, headers: signedBy([FIRST]), toleranceSeconds: Infinity };
    const at = (path: string) => verify({ ...options, jwksUrl: `http://127.0.0.1:${port}${path}` });
    try {
      await at('/keys');
      await expect(at('/moved')).rejects.toMatchObject(refused('keys_unavailable'));
      expect(paths).toEqual(['/keys', '/moved']);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});

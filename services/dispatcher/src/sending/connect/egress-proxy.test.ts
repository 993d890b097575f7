import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import {
  type ConnectProxy,
  type ProxyConduct,
  startConnectProxy,
} from '../../../../../test/support/receivers/connect-proxy.ts';
import { selfSigned } from '../../../../../test/support/receivers/self-signed.ts';
import {
  createEgressProxy,
  createProxy,
  type EgressProxy,
  judgeAnswer,
  type ProxyOptions,
  type TunnelResult,
} from './egress-proxy.ts';

describe('open egress proxy', () => {
  const identity = selfSigned('localhost');

  let dir: string;
  let proxy: ConnectProxy;

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'posthorn-proxy-'));
    proxy = await startConnectProxy(identity);
    proxy.url.hostname = 'localhost';
  });

  afterEach(async () => {
    await proxy.close();
    rmSync(dir, { recursive: true });
  });

  const open = (caFile: string) =>
    createEgressProxy(
      {
        EGRESS_PROXY_URL: proxy.url,
        EGRESS_PROXY_CA_FILE: caFile,
        EGRESS_PROXY_TARGET: 'address',
        DELIVERY_TIMEOUT_MS: 10_000,
      },
      () => undefined,
    );

  test('an https proxy is trusted by the CA that is in its file now [security]', async () => {
    const caFile = join(dir, 'ca.pem');
    writeFileSync(caFile, selfSigned('localhost').cert);
    const egress = open(caFile);
    proxy.behave({ kind: 'answer', status: 403 });
    const refusal = (): Promise<unknown> =>
      egress?.openTunnel('203.0.113.7:443').catch((error: unknown) => error) ?? Promise.resolve();
    expect(await refusal()).toMatchObject({ result: 'fault' });
    writeFileSync(caFile, `${identity.cert}\n`);
    expect(await refusal()).toMatchObject({ result: 'refused' });
  });

  test('a CA file that cannot be read is refused at the start, by its name [security]', () => {
    expect(() => open(join(dir, 'none.pem'))).toThrow(/TLS files of the egress proxy.*none\.pem/);
  });
});

describe('open proxy', () => {
  const AUTHORITY = '203.0.113.7:443';
  /** Long beside what loopback needs, where a limit is not the subject. */
  const LONG_MS = 10_000;

  let proxy: ConnectProxy;
  let results: TunnelResult[];

  beforeEach(async () => {
    results = [];
    proxy = await startConnectProxy();
  });
  afterEach(() => proxy.close());

  const open = (url: URL, options: Partial<ProxyOptions> = {}): EgressProxy =>
    createProxy({
      url,
      tls: null,
      target: 'address',
      connectTimeoutMs: LONG_MS,
      answerTimeoutMs: LONG_MS,
      probeTimeoutMs: LONG_MS,
      onResult: (result) => results.push(result),
      ...options,
    });

  const trusting = (ca: string): SecureContext => createSecureContext({ ca });

  describe('a tunnel [security]', () => {
    let endpoint: Server;
    let conduct: Extract<ProxyConduct, { kind: 'tunnel' }>;
    beforeEach(async () => {
      endpoint = createServer((socket) => socket.end('hello'));
      endpoint.listen(0, '127.0.0.1');
      await once(endpoint, 'listening');
      conduct = { kind: 'tunnel', port: (endpoint.address() as AddressInfo).port };
    });
    afterEach(() => void endpoint.close());

    test('carries what the endpoint sends, and is asked for with the login of the URL', async () => {
      proxy.behave(conduct);
      const url = new URL(proxy.url);
      [url.username, url.password] = ['me', 'p%40ss'];
      const socket = await open(url).openTunnel(AUTHORITY);
      expect(String(Buffer.concat(await socket.toArray()))).toBe('hello');
      const login = `Basic ${Buffer.from('me:p@ss').toString('base64')}`;
      expect([proxy.asked, proxy.logins, results]).toEqual([[AUTHORITY], [login], ['opened']]);
    });

    test('is opened over TLS by an https proxy whose CA is given, and is a fault with another', async () => {
      const identity = selfSigned('localhost');
      const secure = await startConnectProxy(identity);
      try {
        secure.behave(conduct);
        secure.url.hostname = 'localhost';
        const socket = await open(secure.url, { tls: trusting(identity.cert) }).openTunnel(
          AUTHORITY,
        );
        expect(String(Buffer.concat(await socket.toArray()))).toBe('hello');
        const other = open(secure.url, { tls: trusting(selfSigned('localhost').cert) });
        await expect(other.openTunnel(AUTHORITY)).rejects.toMatchObject({ result: 'fault' });
        expect(secure.asked).toHaveLength(1);
      } finally {
        await secure.close();
      }
    });

    test.each([
      ['100', 'HTTP/1.1 100 Continue\r\n\r\n'],
      ['102 and 103', 'HTTP/1.1 102 P\r\nx: y\r\n\r\nHTTP/1.1 103 E\r\n\r\n'],
    ])('is opened by the answer after informational responses: %s', async (_what, before) => {
      proxy.behave({ ...conduct, before });
      const socket = await open(proxy.url).openTunnel(AUTHORITY);
      expect(String(Buffer.concat(await socket.toArray()))).toBe('hello');
      expect(results).toEqual(['opened']);
    });

    test('a tunnel to a name is opened by an https proxy that is verified by its own name', async () => {
      const identity = selfSigned('localhost');
      const secure = await startConnectProxy(identity);
      secure.behave(conduct);
      secure.url.hostname = 'localhost';
      const through = open(secure.url, { tls: trusting(identity.cert), target: 'name' });
      const socket = await through.openTunnel('hook.example.com:443');
      expect(String(Buffer.concat(await socket.toArray()))).toBe('hello');
      await secure.close();
    });
  });

  describe('no tunnel [security]', () => {
    test('is a fault when the proxy sends informational responses only', async () => {
      proxy.behave({ kind: 'answer', status: 102, headers: { x: 'y'.repeat(16_384) } });
      await expect(open(proxy.url).openTunnel(AUTHORITY)).rejects.toMatchObject({
        result: 'fault',
      });
    });

    test.each<[TunnelResult, ProxyConduct]>([
      ['fault', { kind: 'answer', status: 407 }],
      ['refused', { kind: 'answer', status: 403 }],
      ['refused', { kind: 'answer', status: 407, headers: { 'x-smokescreen-error': 'no' } }],
      ['unreachable', { kind: 'answer', status: 502 }],
      ['timeout', { kind: 'answer', status: 504 }],
      ['fault', { kind: 'reset' }],
    ])('is a %s when the proxy does this: %j', async (result, conduct) => {
      proxy.behave(conduct);
      await expect(open(proxy.url).openTunnel(AUTHORITY)).rejects.toMatchObject({ result });
      expect(results).toEqual([result]);
    });

    test('is a fault when the proxy does not listen', async () => {
      await proxy.close();
      const opening = open(proxy.url).openTunnel(AUTHORITY);
      await expect(opening).rejects.toMatchObject({ result: 'fault', code: 'PROXY_FAULT' });
      proxy = await startConnectProxy();
    });

    test('is a fault when the proxy hangs', async () => {
      proxy.behave({ kind: 'hang' });
      const opening = open(proxy.url, { answerTimeoutMs: 50, probeTimeoutMs: 50 }).openTunnel(
        AUTHORITY,
      );
      await expect(opening).rejects.toMatchObject({ result: 'fault' });
    });

    test('is a timeout of the endpoint when the proxy waits for it and answers others', async () => {
      proxy.behave({ kind: 'wait' });
      const opening = open(proxy.url, { answerTimeoutMs: 50 }).openTunnel(AUTHORITY);
      await expect(opening).rejects.toMatchObject({ result: 'timeout' });
    });

    test('has an error without the password of the proxy', async () => {
      proxy.behave({ kind: 'answer', status: 407 });
      const url = new URL(proxy.url);
      [url.username, url.password] = ['me', 'hunter2'];
      const error: unknown = await open(url)
        .openTunnel(AUTHORITY)
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Error);
      expect(`${String(error)} ${JSON.stringify(error)}`).not.toMatch(
        /hunter2|aHVudGVyMg|127\.0\.0/,
      );
    });
  });
});

test.each<[number, TunnelResult]>([
  [200, 'opened'],
  [204, 'opened'],
  [301, 'fault'],
  [400, 'fault'],
  [403, 'refused'],
  [404, 'fault'],
  [407, 'fault'],
  [429, 'fault'],
  [500, 'unreachable'],
  [502, 'unreachable'],
  [503, 'unreachable'],
  [504, 'timeout'],
])('an answer of %d to CONNECT means: %s', (statusCode, result) => {
  expect(judgeAnswer(statusCode, {})).toBe(result);
});

test('a 407 by which Smokescreen refuses the endpoint is no fault of the proxy [security]', () => {
  expect(judgeAnswer(407, { 'x-smokescreen-error': 'denied by rule' })).toBe('refused');
});

test.each<[string, TunnelResult]>([
  ['squid; error=connection_refused', 'unreachable'],
  ['squid; error="connection_refused"; details="111"', 'unreachable'],
  ['squid; error=connection_limit_reached', 'fault'],
  ['edge; received-status=503, squid;error=proxy_internal_error; details="no threads"', 'fault'],
  ['far; error=proxy_internal_error, near; error=destination_unavailable', 'unreachable'],
])('a 503 with Proxy-Status: %s means: %s', (proxyStatus, result) => {
  expect(judgeAnswer(503, { 'proxy-status': proxyStatus })).toBe(result);
});

test('a 503 of an overloaded Envoy is a fault of the proxy [security]', () => {
  expect(judgeAnswer(503, { 'x-envoy-overloaded': 'true' })).toBe('fault');
});

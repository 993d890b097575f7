import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { STRICT_EGRESS, type EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import type { OAuth2Client } from '@posthorn/domain/webhook.ts';
import { gzipSync } from 'node:zlib';
import {
  startConnectProxy,
  type ConnectProxy,
} from '../../../../../test/support/receivers/connect-proxy.ts';
import { startReceiver, type Receiver } from '../../../../../test/support/receivers/receiver.ts';
import { createDeliveryAgent, type DeliveryAgent } from '../connect/delivery-agent.ts';
import { openProxy } from '../connect/proxy/open-proxy.ts';
import { createHostResolver } from '../connect/resolve-host.ts';
import { createDeadlineSweep, type DeadlineSweep } from '../deadline-sweep.ts';
import { createRequestToken, type TokenResult } from './request-token.ts';

const OPEN = { ...STRICT_EGRESS, allowLoopback: true, allowHttp: true };
const LIMITS = { connectTimeoutMs: 5_000, answerTimeoutMs: 5_000, probeTimeoutMs: 5_000 };

let nowMs: number;
let server: Receiver;
let agents: DeliveryAgent[];
let deadlines: DeadlineSweep;
let results: TokenResult[];

beforeEach(async () => {
  [nowMs, agents, results] = [0, [], []];
  deadlines = createDeadlineSweep(() => nowMs);
  server = await startReceiver();
});
afterEach(async () => {
  deadlines.stop();
  await Promise.all(agents.map((agent) => agent.destroy()));
  await server.close();
});

function ask(tokenUrl: string, policy: EgressPolicy = OPEN, proxy: ConnectProxy | null = null) {
  const access = { tls: null, target: 'name' as const, ...LIMITS, onResult: () => undefined };
  const agent = createDeliveryAgent({
    policy,
    connectTimeoutMs: 5_000,
    hosts: createHostResolver(),
    proxy: proxy && openProxy({ url: proxy.url, ...access }),
    onRefused: () => undefined,
    onOpened: () => undefined,
  });
  agents.push(agent);
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
    agentOf(key) {
      expect(key).toBe('key of c');
      return agent;
    },
    deadlines,
    timeoutMs: 1_000,
    monotonicMs: () => nowMs,
    userAgent: 'Posthorn/1',
    onResult: (result) => results.push(result),
  })(client, 'key of c');
}

const failed = (reason: string) => ({ kind: 'failed', reason });

describe('a token request', () => {
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

describe('behind an egress proxy', () => {
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

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { createIdFactory } from '@posthorn/domain/ids.ts';
import { createHash, randomBytes } from 'node:crypto';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import {
  type LoneSender,
  openLoneSender,
} from '../../../../../test/support/process/lone-sender.ts';
import {
  openRawEndpoint,
  type RawEndpoint,
} from '../../../../../test/support/receivers/raw-endpoint.ts';
import { selfSigned, type SelfSigned } from '../../../../../test/support/receivers/self-signed.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import {
  createDeliveryAgent,
  createIdleConnections,
  createSpreadAgents,
  type DeliveryAgent,
  type IdleConnections,
  type SpreadAgents,
} from './agents.ts';
import { createHostResolver } from './resolve-host.ts';

describe('delivery agent', () => {
  const NAME = 'hook.example.com';
  const DAY_MS = 86_400_000;

  const trusted = getCACertificates('default');
  let sender: LoneSender;
  let server: Http2SecureServer | undefined;
  let seen: { httpVersion: string; servername: unknown; protocol: unknown }[] = [];

  beforeEach(() => {
    seen = [];
    sender = openLoneSender({
      resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
    });
  });

  afterEach(async () => {
    setDefaultCACertificates(trusted);
    await sender.close();
    await new Promise((resolve) => server?.close(resolve));
  });

  /** Starts an endpoint that prefers HTTP/2. Resolves with its port. */
  async function listen(identity: SelfSigned): Promise<number> {
    const started = createSecureServer({ ...identity, allowHTTP1: true }, (request, response) => {
      const { servername, alpnProtocol: protocol } = request.socket as {
        servername?: unknown;
        alpnProtocol?: unknown;
      };
      seen.push({ httpVersion: request.httpVersion, servername, protocol });
      response.end('ok');
    });
    started.on('tlsClientError', () => undefined);
    server = started;
    await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
    return (started.address() as AddressInfo).port;
  }

  const REFUSED = { outcome: 'tls_error', statusCode: null, response: null };

  describe('over TLS', () => {
    test('an endpoint gets its name as SNI, and HTTP/1.1 requests although it offers HTTP/2', async () => {
      const identity = selfSigned(NAME);
      setDefaultCACertificates([identity.cert]);
      const port = await listen(identity);
      expect(await sender.send(`https://${NAME}:${port}/`)).toMatchObject({ outcome: 'success' });
      expect(seen).toEqual([{ httpVersion: '1.1', servername: NAME, protocol: 'http/1.1' }]);
    });

    test('an endpoint with a self-signed certificate is a tls_error', async () => {
      const port = await listen(selfSigned(NAME));
      expect(await sender.send(`https://${NAME}:${port}/`)).toMatchObject(REFUSED);
      expect(seen).toEqual([]);
    });

    test.each([
      ['for another name', 'other.example.com', {}],
      ['that has expired', NAME, { validUntilMs: Date.now() - DAY_MS / 2 }],
      ['that is not valid yet', NAME, { validFromMs: Date.now() + DAY_MS / 2 }],
    ])('an endpoint with a certificate %s is a tls_error', async (_what, name, validity) => {
      const identity = selfSigned(name, validity);
      setDefaultCACertificates([identity.cert]);
      const port = await listen(identity);
      expect(await sender.send(`https://${NAME}:${port}/`)).toMatchObject(REFUSED);
      expect(seen).toEqual([]);
    });

    test('certificates are checked even when the environment turns that off', async () => {
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
      try {
        const port = await listen(selfSigned(NAME));
        expect(await sender.send(`https://${NAME}:${port}/`)).toMatchObject(REFUSED);
      } finally {
        delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      }
    });
  });
});

describe('spread agents', () => {
  let agents: SpreadAgents;

  beforeEach(() => {
    agents = createSpreadAgents({
      policy: STRICT_EGRESS,
      connectTimeoutMs: 5_000,
      hosts: createHostResolver(),
      proxy: null,
      onRefused: () => undefined,
      onOpened: () => undefined,
    });
  });
  afterEach(() => agents.destroy());

  const newId = createIdFactory({ nowMs: () => 1_700_000_000_000, randomBytes });
  const hash = (text: string): string => createHash('sha256').update(text).digest('base64url');

  describe('the HTTP clients of an origin', () => {
    test.each([
      ['ids of webhooks', () => newId('wh')],
      ['keys of access tokens', (nth: number) => hash(String(nth))],
    ])('are all used by %s, and evenly', (_what, keyOf) => {
      const used = new Map<unknown, number>();
      for (let nth = 0; nth < 3_200; nth += 1) {
        const agent = agents.agentOf(keyOf(nth));
        used.set(agent, (used.get(agent) ?? 0) + 1);
      }
      expect(used.size).toBe(16);
      expect(Math.max(...used.values())).toBeLessThan(400);
    });

    test('are always the same for one key', () => {
      expect(agents.agentOf('wh_ab')).toBe(agents.agentOf('wh_ab'));
      expect(agents.agentOf('wh_ab')).not.toBe(agents.agentOf('wh_ac'));
    });
  });
});

describe('idle connections', () => {
  const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

  let agent: DeliveryAgent;
  let idle: IdleConnections;
  let reuses: boolean[];
  let endpoints: RawEndpoint[];

  beforeEach(async () => {
    reuses = [];
    idle = createIdleConnections({ maxIdle: 2, onSent: (isReused) => reuses.push(isReused) });
    agent = createDeliveryAgent({
      policy: { ...STRICT_EGRESS, allowLoopback: true, allowHttp: true },
      connectTimeoutMs: 5_000,
      hosts: { resolve: () => Promise.resolve([]), forget: () => undefined },
      proxy: null,
      onRefused: () => undefined,
      onOpened: idle.add,
    });
    endpoints = await Promise.all(Array.from({ length: 4 }, openRawEndpoint));
    for (const endpoint of endpoints) endpoint.talk = (socket) => socket.write(OK);
  });

  afterEach(async () => {
    idle.stop();
    await agent.destroy();
    for (const endpoint of endpoints) endpoint.close();
  });

  async function sendTo(n: number): Promise<void> {
    const origin = endpoints[n]?.origin ?? '';
    await new Promise<void>((resolve, reject) => {
      agent.dispatch(
        { origin, path: '/', method: 'POST' },
        {
          onRequestStart: () => undefined,
          onResponseStart: () => undefined,
          onResponseData: () => undefined,
          onResponseEnd() {
            resolve();
          },
          onResponseError(_controller, error) {
            reject(error);
          },
        },
      );
    });
    await eventually('its connection is idle', () => {
      const stats = agent.stats[origin];
      return !stats || ('free' in stats && stats.free > 0);
    });
  }

  const open = (): number[] =>
    endpoints.map(({ sockets }) => sockets.filter((socket) => !socket.destroyed).length);

  describe('a connection', () => {
    test('is reused, and each request is counted by whether it reused one', async () => {
      await sendTo(0);
      await sendTo(0);
      await sendTo(1);
      expect(reuses).toEqual([false, true, false]);
      expect(endpoints[0]?.sockets).toHaveLength(1);
    });

    test('is closed when it has been idle for longest and too many are idle', async () => {
      for (const n of [0, 1, 0, 2]) await sendTo(n);
      await endpoints[1]?.allClosed();
      expect(open()).toEqual([1, 0, 1, 0]);
      await sendTo(1);
      expect(reuses).toEqual([false, false, true, false, false]);
    });

    test('is not closed while it carries a request, however many are idle', async () => {
      const [slow] = endpoints;
      let answer: () => void = () => undefined;
      const asked = new Promise<void>((resolve) => {
        if (!slow) return;
        slow.talk = (socket) => {
          answer = () => socket.write(OK);
          resolve();
        };
      });
      const first = sendTo(0);
      await asked;
      for (const n of [1, 2, 3]) await sendTo(n);
      await endpoints[1]?.allClosed();
      expect(open()).toEqual([1, 0, 1, 1]);
      answer();
      await first;
    });

    test('no longer counts as idle once its endpoint has closed it', async () => {
      await sendTo(0);
      endpoints[0]?.sockets[0]?.destroy();
      await eventually('its pool is gone', () => Object.keys(agent.stats).length === 0);
      await sendTo(1);
      await sendTo(2);
      expect(open()).toEqual([0, 1, 1, 0]);
    });
  });

  test('an origin keeps no pool once its last connection is closed', async () => {
    for (const n of [0, 1, 2, 3]) await sendTo(n);
    await Promise.all([endpoints[0]?.allClosed(), endpoints[1]?.allClosed()]);
    await eventually('two pools are left', () => Object.keys(agent.stats).length === 2);
  });
});

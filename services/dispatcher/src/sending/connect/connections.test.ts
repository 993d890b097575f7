import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import {
  type LoneSender,
  openConnections,
  openLoneSender,
} from '../../../../../test/support/process/lone-sender.ts';
import {
  openRawEndpoint,
  type RawEndpoint,
} from '../../../../../test/support/receivers/raw-endpoint.ts';
import { selfSigned, type SelfSigned } from '../../../../../test/support/receivers/self-signed.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import type { Connections } from './connections.ts';

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

describe('connections', () => {
  const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
  const PLAIN_BYTES = 20_480;
  /** Seven eighths of it are for idle ones. */
  const ROOM_FOR_TWO = (2 * PLAIN_BYTES * 8) / 7;
  const YOUNG_MS = 10_000;

  let connections: Connections;
  let reuses: boolean[];
  let evicted: number;
  let endpoints: RawEndpoint[];
  let nowMs: number;

  beforeEach(async () => {
    [reuses, evicted, nowMs] = [[], 0, 0];
    connections = open(ROOM_FOR_TWO);
    endpoints = await Promise.all(Array.from({ length: 4 }, openRawEndpoint));
    for (const endpoint of endpoints) endpoint.talk = (socket) => socket.write(OK);
  });

  afterEach(async () => {
    await connections.destroy();
    for (const endpoint of endpoints) endpoint.close();
  });

  function open(maxBytes: number): Connections {
    return openConnections({
      policy: { ...STRICT_EGRESS, allowLoopback: true, allowHttp: true },
      hosts: { resolve: () => Promise.resolve([]), forget: () => undefined },
      maxBytes,
      onSent: (isReused) => reuses.push(isReused),
      onEvicted: () => (evicted += 1),
      monotonicMs: () => nowMs,
    });
  }

  function request(n: number, headers: string[] = []): Promise<void> {
    const origin = endpoints[n]?.origin ?? '';
    return new Promise<void>((resolve, reject) => {
      connections.agentOf(null).dispatch(
        { origin, path: '/', method: 'POST', headers },
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
  }
  async function released(): Promise<void> {
    await eventually('its connection is released', () => connections.count().held === 0);
  }
  async function sendTo(n: number): Promise<void> {
    await request(n);
    await released();
  }

  const openAt = (): number[] =>
    endpoints.map(({ sockets }) => sockets.filter((socket) => !socket.destroyed).length);

  interface Held {
    asked: Promise<undefined>;
    answer: () => void;
  }

  /** Endpoint 0 answers once `answer` is called. */
  function holdFirst(): Held {
    const { promise: asked, resolve } = Promise.withResolvers<undefined>();
    const held: Held = { asked, answer: () => undefined };
    const [slow] = endpoints;
    if (slow) {
      slow.talk = (socket) => {
        held.answer = () => void socket.write(OK);
        resolve(undefined);
      };
    }
    return held;
  }

  test('are reused, and each request is counted by whether it reused one', async () => {
    await sendTo(0);
    await sendTo(0);
    await sendTo(1);
    expect(reuses).toEqual([false, true, false]);
    expect(endpoints[0]?.sockets).toHaveLength(1);
    expect(connections.count()).toEqual({ open: 2, idle: 2, held: 0 });
    expect(connections.usedBytes()).toBe(2 * PLAIN_BYTES);
  });

  test('carry one request each, and the one that was idle last is used first', async () => {
    const held = holdFirst();
    const slow = request(0);
    await held.asked;
    if (endpoints[0]) endpoints[0].talk = (socket) => socket.write(OK);
    await request(0);
    held.answer();
    await slow;
    await released();
    expect(connections.count()).toEqual({ open: 2, idle: 2, held: 0 });
    const [first, second] = endpoints[0]?.sockets ?? [];
    second?.end();
    await eventually('one is left', () => connections.count().open === 1);
    await sendTo(0);
    expect([first?.destroyed, endpoints[0]?.sockets.length]).toEqual([false, 2]);
  });

  test('are closed, longest idle first, when they hold more memory than they may', async () => {
    for (const n of [0, 1, 0]) await sendTo(n);
    nowMs += YOUNG_MS;
    await sendTo(2);
    await endpoints[1]?.allClosed();
    expect([openAt(), evicted]).toEqual([[1, 0, 1, 0], 1]);
    await sendTo(1);
    expect(reuses).toEqual([false, false, true, false, false]);
    expect(connections.usedBytes()).toBe(2 * PLAIN_BYTES);
  });

  test('remain while they are used, when there are too many to keep all', async () => {
    await connections.destroy();
    connections = open(4 * ROOM_FOR_TWO);
    endpoints.push(...(await Promise.all(Array.from({ length: 6 }, openRawEndpoint))));
    for (const endpoint of endpoints) endpoint.talk = (socket) => socket.write(OK);
    for (let round = 0; round < 3; round += 1) {
      for (const n of endpoints.keys()) await sendTo(n);
      nowMs += YOUNG_MS - 1;
    }
    const opened = endpoints.map(({ sockets }) => sockets.length);
    expect(opened).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 3, 3]);
    expect(evicted).toBe(6);
  });

  test('are not closed while they carry a request, and what these hold is not there for idle ones', async () => {
    const held = holdFirst();
    const first = request(0);
    await held.asked;
    for (const n of [1, 2]) {
      await request(n);
      await eventually('idle', () => connections.count().held === 1);
      nowMs += YOUNG_MS;
    }
    await endpoints[1]?.allClosed();
    expect(openAt()).toEqual([1, 0, 1, 0]);
    held.answer();
    await first;
  });

  test('keep a quarter of the memory while those with a request hold all of it', async () => {
    await connections.destroy();
    connections = open(4 * PLAIN_BYTES);
    const held: (() => void)[] = [];
    if (endpoints[0]) endpoints[0].talk = (socket) => held.push(() => socket.write(OK));
    const hanging = [1, 2, 3, 4, 5].map(() => request(0));
    await eventually('all hang', () => held.length === 5);
    for (const n of [1, 2]) {
      await request(n);
      await eventually('idle', () => connections.count().held === 5);
      nowMs += YOUNG_MS;
    }
    await endpoints[1]?.allClosed();
    expect(openAt()).toEqual([5, 0, 1, 0]);
    for (const answer of held) answer();
    await Promise.all(hanging);
  });

  test('are closed after five minutes, however busy', async () => {
    await sendTo(0);
    nowMs += 299_999;
    await sendTo(0);
    expect(endpoints[0]?.sockets).toHaveLength(1);
    nowMs += 1;
    await sendTo(0);
    expect(endpoints[0]?.sockets).toHaveLength(2);
    expect(openAt()).toEqual([1, 0, 0, 0]);
  });

  test('of webhooks with TLS settings of their own share the memory of their certificates', () => {
    const bytes = 40_960;
    connections = openConnections({
      policy: STRICT_EGRESS,
      hosts: { resolve: () => Promise.resolve([]), forget: () => undefined },
      tlsClientBytes: 2 * bytes,
    });
    const agents = ['a', 'b', 'b', 'c'].map((id) =>
      connections.agentOf({ id, client: null, ca: null }),
    );
    expect(agents[1]).toBe(agents[2]);
    expect(new Set(agents).size).toBe(3);
    expect(connections.tlsClientBytes()).toBe(2 * bytes);
  });

  test('leave nothing behind once their endpoints have closed them', async () => {
    for (const n of [0, 1]) await sendTo(n);
    for (const n of [0, 1]) endpoints[n]?.sockets[0]?.destroy();
    await eventually('none is open', () => connections.count().open === 0);
    expect([connections.count(), connections.usedBytes()]).toEqual([
      { open: 0, idle: 0, held: 0 },
      0,
    ]);
  });

  test('are kept when a request is refused before it is sent', async () => {
    await sendTo(0);
    await expect(request(0, ['x-bad', 'a\r\nb'])).rejects.toThrow();
    expect(connections.count()).toEqual({ open: 1, idle: 1, held: 0 });
    await expect(request(1, ['x-bad', 'a\r\nb'])).rejects.toThrow();
    expect(connections.count()).toEqual({ open: 1, idle: 1, held: 0 });
  });

  test('that cannot be opened leave nothing behind', async () => {
    endpoints[3]?.close();
    await expect(request(3)).rejects.toThrow('ECONNREFUSED');
    expect(connections.count()).toEqual({ open: 0, idle: 0, held: 0 });
  });
});

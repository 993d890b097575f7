import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { EventEmitter, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { openConnections } from '../../../../../test/support/process/lone-sender.ts';
import { startConnectProxy } from '../../../../../test/support/receivers/connect-proxy.ts';
import {
  authority,
  issuedBy,
  selfSigned,
  type SelfSigned,
} from '../../../../../test/support/receivers/self-signed.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import type { IdentifiedTls } from '../../webhooks.ts';
import type { Connections } from './connections.ts';
import { createProxy, type EgressProxy } from './egress-proxy.ts';
import { createTlsSessions, type Handshake, type Peer, type TlsSessions } from './tls-sessions.ts';

const PEER: Peer = { settings: '', name: 'a.example.com', address: '8.8.8.8', port: '443' };
const HOUR_MS = 3_600_000;

describe('TLS sessions', () => {
  const MAX_BYTES = 100_000;
  let nowMs: number;
  let handshakes: Handshake[];
  let sessions: TlsSessions;

  beforeEach(() => {
    [nowMs, handshakes] = [0, []];
    sessions = createTlsSessions({
      maxBytes: MAX_BYTES,
      onHandshake: (kind) => handshakes.push(kind),
      monotonicMs: () => nowMs,
      wallClockMs: () => nowMs,
    });
  });

  interface Shaken {
    isResumed?: boolean;
    validForMs?: number;
    session?: Buffer | null;
  }

  /** Connects as the guard does, to an endpoint whose certificate is verified. */
  function connect(
    peer: Peer,
    { isResumed = false, validForMs = 10 * HOUR_MS, session = Buffer.alloc(1_000) }: Shaken = {},
  ): EventEmitter {
    const socket = Object.assign(new EventEmitter(), {
      isSessionReused: () => isResumed,
      getPeerX509Certificate: () => ({ validToDate: new Date(nowMs + validForMs) }),
    });
    sessions.follow(socket as unknown as TLSSocket, peer, sessions.find(peer));
    socket.emit('secureConnect');
    if (session) socket.emit('session', session);
    return socket;
  }

  describe('the session of a connection', () => {
    test('is offered to the same peer', () => {
      connect(PEER, { session: Buffer.from('s') });
      expect(sessions.find(PEER)?.bytes.toString()).toBe('s');
    });

    test.each<[string, Partial<Peer>]>([
      ['other TLS settings', { settings: 'webhook' }],
      ['another name', { name: 'b.example.com' }],
      ['another address', { address: '8.8.4.4' }],
      ['another port', { port: '8443' }],
    ])('is not offered with %s [security]', (_what, other) => {
      connect(PEER);
      expect(sessions.find({ ...PEER, ...other })).toBeUndefined();
    });

    test('is replaced by the newest', () => {
      connect(PEER, { session: Buffer.from('old') });
      connect(PEER, { session: Buffer.from('new'), isResumed: true });
      expect(sessions.find(PEER)?.bytes.toString()).toBe('new');
    });

    test('ends an hour after the certificate was verified, however often it is resumed [security]', () => {
      connect(PEER);
      nowMs += HOUR_MS / 2;
      connect(PEER, { isResumed: true });
      nowMs += HOUR_MS / 2 - 1;
      expect(sessions.find(PEER)).toBeDefined();
      nowMs += 1;
      expect(sessions.find(PEER)).toBeUndefined();
      expect(sessions.usedBytes()).toBe(0);
    });

    test('begins anew with a full handshake', () => {
      connect(PEER);
      nowMs += HOUR_MS / 2;
      connect(PEER);
      nowMs += HOUR_MS - 1;
      expect(sessions.find(PEER)).toBeDefined();
    });

    test('ends with the certificate [security]', () => {
      connect(PEER, { validForMs: 5_000 });
      nowMs += 4_999;
      expect(sessions.find(PEER)).toBeDefined();
      nowMs += 1;
      expect(sessions.find(PEER)).toBeUndefined();
    });

    test('is dropped when the endpoint refuses it', () => {
      connect(PEER);
      connect(PEER, { session: null });
      expect(sessions.find(PEER)).toBeUndefined();
    });

    test('is dropped when the handshake with it fails, but not by a later error', () => {
      connect(PEER)
        .on('error', () => undefined)
        .emit('error', new Error('reset'));
      const offered = sessions.find(PEER);
      expect(offered).toBeDefined();
      const socket = new EventEmitter();
      sessions.follow(socket as unknown as TLSSocket, PEER, offered);
      socket.emit('error', new Error('bad record'));
      expect(sessions.find(PEER)).toBeUndefined();
    });
  });

  test('are bounded in bytes, and the least recently used go first', () => {
    const peer = (n: number): Peer => ({ ...PEER, name: `h${n}.example.com` });
    for (let n = 0; n < 500; n += 1) {
      connect(peer(n));
      sessions.find(peer(0));
    }
    expect(sessions.usedBytes()).toBeLessThanOrEqual(MAX_BYTES);
    expect(sessions.usedBytes()).toBeGreaterThan(MAX_BYTES * 0.9);
    expect([sessions.find(peer(0)), sessions.find(peer(499))]).not.toContain(undefined);
    expect(sessions.find(peer(1))).toBeUndefined();
  });

  test('of more than 8 KiB are not kept: an endpoint chooses their size', () => {
    connect(PEER, { session: Buffer.alloc(8_193) });
    expect(sessions.usedBytes()).toBe(0);
  });

  test('keep only their own bytes alive', () => {
    connect(PEER, { session: Buffer.alloc(65_536).subarray(0, 700) });
    expect(sessions.find(PEER)?.bytes.buffer.byteLength).toBe(700);
  });

  test('count each handshake as full or resumed', () => {
    connect(PEER);
    connect(PEER, { isResumed: true });
    expect(handshakes).toEqual(['full', 'resumed']);
  });
});

/** The sessions on real sockets. Each request has a connection of its own. */
describe('a new connection to an endpoint', () => {
  const NAME = 'hook.example.com';
  const ca = authority('a private authority');
  const identity = issuedBy(ca, NAME);

  let server: Server;
  let port = 0;
  let resumed: boolean[];
  let handshakes: Handshake[];
  let connections: Connections;

  beforeEach(async () => {
    [resumed, handshakes] = [[], []];
    await listen(identity);
    connections = open('127.0.0.1');
  });
  afterEach(async () => {
    await connections.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  async function listen(
    own: SelfSigned,
    options: { maxVersion?: 'TLSv1.2'; port?: number } = {},
  ): Promise<void> {
    const { port: on = 0, ...tls } = options;
    server = createServer({ ...own, ...tls }, (socket) => {
      resumed.push(socket.isSessionReused());
      socket.on('error', () => undefined);
      socket.on('data', () =>
        socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'),
      );
    });
    server.on('tlsClientError', () => undefined);
    server.listen(on, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  }

  function open(address: string, proxy: EgressProxy | null = null): Connections {
    return openConnections({
      policy: { ...STRICT_EGRESS, allowLoopback: true },
      hosts: { resolve: () => Promise.resolve([{ address, family: 4 }]), forget: () => undefined },
      proxy,
      onHandshake: (kind) => handshakes.push(kind),
    });
  }

  const tlsOf = (id: string, authorities = ca.cert): IdentifiedTls => ({
    id,
    client: null,
    ca: authorities,
  });

  /** Resolves with the code of the error; null for a response. */
  async function send(tls = tlsOf('a'), name = NAME): Promise<string | null> {
    const error = await new Promise<Error | null>((resolve) => {
      connections.agentOf(tls).dispatch(
        { origin: `https://${name}:${port}`, path: '/', method: 'POST', body: '{}' },
        {
          onRequestStart: () => undefined,
          onResponseStart: () => undefined,
          onResponseData: () => undefined,
          onResponseEnd() {
            resolve(null);
          },
          onResponseError(_controller, problem) {
            resolve(problem);
          },
        },
      );
    });
    await eventually('the connection is closed', () => connections.count().held === 0);
    return error && ((error as NodeJS.ErrnoException).code ?? error.message);
  }

  test.each([{}, { maxVersion: 'TLSv1.2' as const }])(
    'resumes its session: %j',
    async (version) => {
      server.close();
      await listen(identity, version);
      for (let nth = 0; nth < 3; nth += 1) expect(await send()).toBeNull();
      expect(resumed).toEqual([false, true, true]);
      expect(handshakes).toEqual(['full', 'resumed', 'resumed']);
    },
  );

  test('resumes it through a proxy too', async () => {
    const proxy = await startConnectProxy();
    proxy.behave({ kind: 'tunnel', port });
    const limits = { connectTimeoutMs: 5_000, answerTimeoutMs: 5_000, probeTimeoutMs: 5_000 };
    const given = { url: proxy.url, tls: null, target: 'address' as const, ...limits };
    await connections.destroy();
    connections = open('8.8.8.8', createProxy({ ...given, onResult: () => undefined }));
    for (let nth = 0; nth < 2; nth += 1) expect(await send()).toBeNull();
    expect(resumed).toEqual([false, true]);
    await proxy.close();
  });

  test('does not resume that of other TLS settings, nor of another name [security]', async () => {
    server.close();
    await listen(issuedBy(ca, '*.example.com'));
    await send(tlsOf('a'));
    await send(tlsOf('b'));
    await send(tlsOf('a'), 'other.example.com');
    expect(resumed).toEqual([false, false, false]);
    await send(tlsOf('a'));
    expect(resumed).toEqual([false, false, false, true]);
  });

  test('is refused by settings that do not trust its certificate, whatever others have verified [security]', async () => {
    await send(tlsOf('a'));
    expect(await send(tlsOf('b', authority('another').cert))).toMatch(/CERT|SIGNATURE|ISSUER/);
    expect(await send(tlsOf('a'), 'other.example.com')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
    expect(handshakes).toEqual(['full']);
  });

  describe('whose certificate has changed', () => {
    const startAgain = async (own: SelfSigned): Promise<void> => {
      await new Promise((resolve) => server.close(resolve));
      await listen(own, { port });
    };

    test('verifies the new one, and resumes from then on', async () => {
      await send();
      await startAgain(issuedBy(ca, NAME));
      for (let nth = 0; nth < 2; nth += 1) expect(await send()).toBeNull();
      expect(resumed).toEqual([false, false, true]);
    });

    test('refuses one that is not valid, again and again [security]', async () => {
      await send();
      await startAgain(selfSigned(NAME));
      for (let nth = 0; nth < 2; nth += 1) expect(await send()).not.toBeNull();
      expect(handshakes).toEqual(['full']);
    });
  });
});

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import {
  openLoneSender,
  type LoneSender,
} from '../../../../../test/support/process/lone-sender.ts';
import { selfSigned, type SelfSigned } from '../../../../../test/support/receivers/self-signed.ts';

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

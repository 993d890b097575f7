import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { openLoneSender, type LoneSender } from '../../../../test/support/process/lone-sender.ts';
import {
  startClientCertificateEndpoint,
  type ClientCertificateEndpoint,
} from '../../../../test/support/receivers/client-certificate-endpoint.ts';
import {
  startConnectProxy,
  type ConnectProxy,
} from '../../../../test/support/receivers/connect-proxy.ts';
import {
  authority,
  issuedBy,
  selfSigned,
  type SelfSigned,
} from '../../../../test/support/receivers/self-signed.ts';
import type { IdentifiedTls } from '../webhooks.ts';
import { createProxy } from './connect/egress-proxy.ts';

const NAME = 'hook.example.com';
const own = selfSigned(NAME);
const known = selfSigned('posthorn-of-one-webhook');
const another = selfSigned('posthorn-of-another-webhook');

let endpoint: ClientCertificateEndpoint;
let sender: LoneSender;

const tlsOf = (id: string, client: SelfSigned | null, ca: string | null): IdentifiedTls => ({
  id,
  client: client && { certificate: client.cert, key: client.key },
  ca,
});
const fingerprintOf = ({ cert }: SelfSigned): string => new X509Certificate(cert).fingerprint256;

const portOf = ({ url }: ClientCertificateEndpoint): number => Number(new URL(url).port);

/** Room for this many clients. */
function openSender(clients = 16): LoneSender {
  const resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 as const }]);
  return openLoneSender({ resolve, tlsClientBytes: clients * 40_960 });
}

function openSenderBehind(proxy: ConnectProxy): LoneSender {
  const limits = { connectTimeoutMs: 5_000, answerTimeoutMs: 5_000, probeTimeoutMs: 5_000 };
  const onResult = () => undefined;
  return openLoneSender({
    proxy: createProxy({ url: proxy.url, tls: null, target: 'address', ...limits, onResult }),
    resolve: () => Promise.resolve([{ address: '8.8.8.8', family: 4 }]),
  });
}

beforeEach(async () => {
  endpoint = await startClientCertificateEndpoint(NAME, { own, clients: [known.cert] });
  sender = openSender();
});
afterEach(async () => {
  await sender.close();
  await endpoint.close();
});

const REFUSED = { outcome: 'tls_error', statusCode: null, response: null };
/** To a certificate that it does not know, a Node server says nothing: it closes the connection. */
const CLOSED = { outcome: 'connect_error', statusCode: null, response: null };

describe('an endpoint with a private authority that demands a certificate [security]', () => {
  test('gets the certificate of the webhook', async () => {
    const attempt = await sender.send(endpoint.url, tlsOf('a', known, own.cert));
    expect(attempt).toMatchObject({ outcome: 'success', statusCode: 200 });
    expect(endpoint.clients).toEqual([fingerprintOf(known)]);
  });

  test('gets it through a proxy too', async () => {
    const proxy = await startConnectProxy();
    proxy.behave({ kind: 'tunnel', port: portOf(endpoint) });
    const behindProxy = openSenderBehind(proxy);
    const attempt = await behindProxy.send(endpoint.url, tlsOf('a', known, own.cert));
    expect(attempt).toMatchObject({ outcome: 'success' });
    expect(endpoint.clients).toEqual([fingerprintOf(known)]);
    await behindProxy.close();
    await proxy.close();
  });

  test.each([
    ['without a certificate', tlsOf('a', null, own.cert), REFUSED],
    ['with one that the endpoint does not know', tlsOf('a', another, own.cert), CLOSED],
    ['whose authority is another one', tlsOf('a', known, another.cert), REFUSED],
    ['whose authority is not given', tlsOf('a', known, null), REFUSED],
  ])('gets nothing of a webhook %s', async (_what, tls, failed) => {
    expect(await sender.send(endpoint.url, tls)).toMatchObject(failed);
    expect(endpoint.clients).toEqual([]);
  });

  test('gets nothing of a webhook without TLS settings', async () => {
    expect(await sender.send(endpoint.url)).toMatchObject(REFUSED);
  });
});

test('informational responses that were not asked for are skipped over TLS too [security]', async () => {
  const response = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
  const server = createServer(own, (socket) => {
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.includes('POST /')) return;
      socket.write('HTTP/1.1 10');
      socket.write(`0 Continue\r\nconnection: close\r\n\r\n${response}`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const attempts = [];
  for (let request = 0; request < 2; request += 1) {
    attempts.push(await sender.send(`https://${NAME}:${port}/`, tlsOf('a', null, own.cert)));
  }
  server.close();
  const success = { outcome: 'success', statusCode: 200, response: 'ok' };
  expect(attempts).toMatchObject([success, success]);
});

/** RFC 6066, section 3. */
describe('the server name in the handshake [security]', () => {
  const port = () => portOf(endpoint);

  test.each([
    ['a name', NAME],
    ['a name with a trailing dot', `${NAME}.`],
    ['a name with an ideographic trailing dot', `${NAME}。`],
  ])('is that of the URL without a dot at its end: %s', async (_what, host) => {
    const proxy = await startConnectProxy();
    proxy.behave({ kind: 'tunnel', port: port() });
    const behindProxy = openSenderBehind(proxy);
    for (const each of [sender, behindProxy]) {
      const attempt = await each.send(`https://${host}:${port()}/`, tlsOf('a', known, own.cert));
      expect(attempt).toMatchObject({ outcome: 'success' });
    }
    await behindProxy.close();
    await proxy.close();
    expect(endpoint.serverNames).toEqual([NAME, NAME]);
  });

  test('is missing when the URL has an address', async () => {
    await endpoint.close();
    const ofAddress = selfSigned('127.0.0.1');
    const asked = { own: ofAddress, clients: [known.cert] };
    endpoint = await startClientCertificateEndpoint('127.0.0.1', asked);
    const attempt = await sender.send(endpoint.url, tlsOf('a', known, ofAddress.cert));
    expect(attempt).toMatchObject({ outcome: 'success' });
    expect(endpoint.serverNames).toEqual([false]);
  });
});

describe('an endpoint whose certificate an intermediate authority has issued [security]', () => {
  const root = authority('the root');
  const intermediate = authority('the intermediate', root);
  const { key, cert } = issuedBy(intermediate, NAME);
  const chain = { key, cert: cert + intermediate.cert };
  const asked = { own: chain, clients: [known.cert] };

  beforeEach(async () => {
    await endpoint.close();
    endpoint = await startClientCertificateEndpoint(NAME, asked);
  });

  test.each([
    ['the root', root.cert],
    ['the intermediate authority', intermediate.cert],
    ['the certificate itself', cert],
    ['another authority and the intermediate one', authority('another').cert + intermediate.cert],
  ])('is trusted by a webhook that trusts %s', async (_what, ca) => {
    const attempt = await sender.send(endpoint.url, tlsOf('a', known, ca));
    expect(attempt).toMatchObject({ outcome: 'success' });
  });

  test.each([
    ['another authority of the same name', authority('the intermediate').cert],
    ['another certificate of the same root', issuedBy(root, NAME).cert],
  ])('is refused by a webhook that trusts %s', async (_what, ca) => {
    expect(await sender.send(endpoint.url, tlsOf('a', known, ca))).toMatchObject(REFUSED);
  });
});

describe('webhooks with different certificates for one endpoint [security]', () => {
  test('never share a connection', async () => {
    expect(await sender.send(endpoint.url, tlsOf('a', known, own.cert))).toMatchObject({
      outcome: 'success',
    });
    expect(await sender.send(endpoint.url, tlsOf('b', another, own.cert))).toMatchObject(CLOSED);
    expect(await sender.send(endpoint.url, tlsOf('c', null, own.cert))).toMatchObject(REFUSED);
    expect(await sender.send(endpoint.url)).toMatchObject(REFUSED);
    expect(endpoint.clients).toEqual([fingerprintOf(known)]);
  });

  test('are all delivered when there is room for the certificate of one only', async () => {
    await sender.close();
    sender = openSender(1);
    const attempts = await Promise.all(
      ['a', 'b', 'c', 'a'].map((id) => sender.send(endpoint.url, tlsOf(id, known, own.cert))),
    );
    expect(attempts.map(({ outcome }) => outcome)).toEqual(Array(4).fill('success'));
  });
});

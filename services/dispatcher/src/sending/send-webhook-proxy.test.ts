import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createServer, type Server } from 'node:https';
import { connect, isIP, type AddressInfo, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import {
  openLoneSender,
  TIMEOUT_MS,
  type LoneSender,
} from '../../../../test/support/process/lone-sender.ts';
import {
  startConnectProxy,
  type ConnectProxy,
} from '../../../../test/support/receivers/connect-proxy.ts';
import { openRawEndpoint } from '../../../../test/support/receivers/raw-endpoint.ts';
import { startReceiver, type Receiver } from '../../../../test/support/receivers/receiver.ts';
import { selfSigned } from '../../../../test/support/receivers/self-signed.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createProxy, type EgressProxy } from './connect/egress-proxy.ts';

const NAME = 'hook.example.com';
const trusted = getCACertificates('default');

let proxy: ConnectProxy;
let receiver: Receiver;
let sender: LoneSender;
let lookups: number;

function openSender(target: EgressProxy['target'], addresses = ['8.8.8.8']): LoneSender {
  const limits = { connectTimeoutMs: 5_000, answerTimeoutMs: 5_000, probeTimeoutMs: 5_000 };
  return openLoneSender({
    proxy: createProxy({ url: proxy.url, tls: null, target, ...limits, onResult: () => undefined }),
    policy: { allowLoopback: false },
    resolve() {
      lookups += 1;
      return Promise.resolve(addresses.map((address) => ({ address, family: isIP(address) })));
    },
  });
}

beforeEach(async () => {
  lookups = 0;
  [proxy, receiver] = [await startConnectProxy(), await startReceiver()];
  proxy.behave({ kind: 'tunnel', port: Number(new URL(receiver.url).port) });
  sender = openSender('address');
});
afterEach(async () => {
  setDefaultCACertificates(trusted);
  await sender.close();
  await Promise.all([proxy.close(), receiver.close()]);
});

describe('the proxy gets [security]', () => {
  test('an address that was checked, and the endpoint gets its own name', async () => {
    expect(await sender.send(`http://${NAME}/hook`)).toMatchObject({ outcome: 'success' });
    expect([proxy.asked, lookups]).toEqual([['8.8.8.8:80'], 1]);
    expect(receiver.received[0]?.headers.host).toBe(NAME);
  });

  test('an address of the URL without a look-up', async () => {
    await sender.send('http://[2606:4700::1111]/');
    expect([proxy.asked, lookups]).toEqual([['[2606:4700::1111]:80'], 0]);
  });

  test('the next address when it cannot reach one, and three at most', async () => {
    await sender.close();
    sender = openSender('address', ['8.8.8.8', '8.8.4.4', '9.9.9.9', '1.1.1.1']);
    proxy.behave({ kind: 'answer', status: 503 });
    expect(await sender.send(`http://${NAME}/`)).toMatchObject({ outcome: 'connect_error' });
    expect(proxy.asked).toEqual(['8.8.8.8:80', '8.8.4.4:80', '9.9.9.9:80']);
  });

  test('the name, without a look-up, where it filters by name', async () => {
    await sender.close();
    sender = openSender('name');
    expect(await sender.send(`http://${NAME}/`)).toMatchObject({ outcome: 'success' });
    expect([proxy.asked, lookups]).toEqual([[`${NAME}:80`], 0]);
  });

  test.each(['http://10.0.0.1/', 'http://kafka/', 'http://8.8.8.8:6379/'])(
    'nothing of %s, also where it filters by name',
    async (url) => {
      await sender.close();
      sender = openSender('name');
      expect(await sender.send(url)).toMatchObject({ outcome: 'egress_blocked' });
      expect(proxy.asked).toEqual([]);
    },
  );
});

describe('an https endpoint behind the proxy [security]', () => {
  let server: Server;
  async function listen(identity: { key: string; cert: string }): Promise<void> {
    server = createServer(identity, (_request, response) => response.end('ok'));
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    proxy.behave({ kind: 'tunnel', port: (server.address() as AddressInfo).port });
  }
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  test('is verified by its name, and a second request reuses the tunnel', async () => {
    const identity = selfSigned(NAME);
    setDefaultCACertificates([identity.cert]);
    await listen(identity);
    expect(await sender.send(`https://${NAME}/`)).toMatchObject({ outcome: 'success' });
    await eventually('the connection is free', () => sender.idle() === 1);
    expect(await sender.send(`https://${NAME}/`)).toMatchObject({ outcome: 'success' });
    expect(proxy.asked).toEqual(['8.8.8.8:443']);
  });

  test('an endpoint with a certificate for another name is a tls_error', async () => {
    const identity = selfSigned('other.example.com');
    setDefaultCACertificates([identity.cert]);
    await listen(identity);
    expect(await sender.send(`https://${NAME}/`)).toMatchObject({ outcome: 'tls_error' });
  });
});

test.each(['http', 'https'])(
  'a tunnel for %s that opens after the deadline is closed, and nothing is sent through it',
  async (scheme) => {
    const asked = Promise.withResolvers<undefined>();
    const tunnel = Promise.withResolvers<Socket>();
    const openTunnel = (): Promise<Socket> => {
      asked.resolve(undefined);
      return tunnel.promise;
    };
    await sender.close();
    sender = openLoneSender({
      proxy: { target: 'name', openTunnel },
      resolve: () => Promise.resolve([]),
    });
    const attempt = sender.send(`${scheme}://${NAME}/`);
    await asked.promise;
    sender.timePasses(TIMEOUT_MS);
    expect(await attempt).toMatchObject({ outcome: 'timeout' });
    expect(sender.held()).toBe(0);
    const endpoint = await openRawEndpoint();
    const socket = connect(Number(new URL(endpoint.origin).port), '127.0.0.1');
    tunnel.resolve(socket);
    await eventually('the tunnel is closed', () => socket.closed);
    endpoint.close();
    expect(endpoint.sockets.filter(({ bytesRead }) => bytesRead > 0)).toEqual([]);
  },
);

describe('no tunnel [security]', () => {
  test.each([
    ['connect_error', 502],
    ['timeout', 504],
    ['egress_blocked', 403],
  ])('is a %s of the endpoint after an answer of %d', async (outcome, status) => {
    proxy.behave({ kind: 'answer', status });
    expect(await sender.send(`http://${NAME}/`)).toMatchObject({ outcome, statusCode: null });
  });

  test('is no attempt when the proxy failed', async () => {
    proxy.behave({ kind: 'answer', status: 407 });
    await expect(sender.send(`http://${NAME}/`)).rejects.toThrow('the proxy failed');
    expect(receiver.received).toEqual([]);
    expect(sender.held()).toBe(0);
  });
});

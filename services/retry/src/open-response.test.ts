import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { createServer, getCACertificates, setDefaultCACertificates, type Server } from 'node:tls';
import { openRawEndpoint, type RawEndpoint } from '../../../test/support/receivers/raw-endpoint.ts';
import { selfSigned } from '../../../test/support/receivers/self-signed.ts';
import { openResponse } from './open-response.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

function post(url: string, signal = new AbortController().signal) {
  const headers = { 'content-type': 'text/plain' };
  return openResponse(url, { method: 'POST', headers, body: Buffer.from('hello'), signal });
}

describe('a response', () => {
  let endpoint: RawEndpoint;
  beforeEach(async () => {
    endpoint = await openRawEndpoint();
  });
  afterEach(() => {
    endpoint.close();
  });

  test.each([
    ['alone', ''],
    ['after 100', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['after 100 twice', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(2)],
    ['after 102 and 103', 'HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nlink: </a>\r\n\r\n'],
  ])('is the one that ends the request: %s', async (_what, before) => {
    endpoint.talk = (socket: Socket) => void socket.write(before + OK);
    const response = await post(endpoint.origin);
    expect([response.statusCode, await text(response)]).toEqual([200, 'ok']);
  });

  test.each<[string, (socket: Socket) => void]>([
    ['the connection is closed', (socket) => void socket.end()],
    ['the protocol changes', (socket) => void socket.write(`HTTP/1.1 101 S\r\n\r\n${OK}`)],
    [
      'the protocol changes to another one',
      (socket) =>
        void socket.write('HTTP/1.1 101 S\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n'),
    ],
    [
      'only informational responses come',
      (socket) => void socket.write('HTTP/1.1 103 E\r\n\r\n'.repeat(17)),
    ],
  ])('is none when %s', async (_what, talk) => {
    endpoint.talk = talk;
    await expect(post(endpoint.origin)).rejects.toThrow();
  });

  test('is none when the signal is aborted', async () => {
    const controller = new AbortController();
    endpoint.talk = () => {
      controller.abort();
    };
    await expect(post(endpoint.origin, controller.signal)).rejects.toThrow();
  });

  test('may be a redirect, which is not followed', async () => {
    endpoint.talk = (socket) => void socket.end('HTTP/1.1 302 F\r\nlocation: /b\r\n\r\n');
    expect((await post(endpoint.origin)).statusCode).toBe(302);
    expect(endpoint.sockets).toHaveLength(1);
  });
});

describe('over TLS', () => {
  const trusted = getCACertificates('default');
  let server: Server;
  let serverNames: unknown[];
  beforeEach(async () => {
    serverNames = [];
    const identity = selfSigned('localhost');
    setDefaultCACertificates([identity.cert]);
    server = createServer(identity, (socket) => {
      serverNames.push(socket.servername);
      socket.once('data', () => socket.end(OK));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    setDefaultCACertificates(trusted);
    server.close();
  });

  test.each(['localhost', 'localhost.'])(
    'the server name of %s has no dot at its end',
    async (host) => {
      const { port } = server.address() as AddressInfo;
      const response = await openResponse(`https://${host}:${port}/`, {
        method: 'GET',
        headers: {},
        signal: new AbortController().signal,
        lookup: (_hostname, _options, callback) => {
          callback(null, [{ address: '127.0.0.1', family: 4 }]);
        },
      });
      expect([response.statusCode, serverNames]).toEqual([200, ['localhost']]);
      response.destroy();
    },
  );
});

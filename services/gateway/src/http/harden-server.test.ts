import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  ENVELOPE,
  openConnection,
  parseAnswer,
  type RawConnection,
} from '../../../../test/support/receivers/raw-connection.ts';
import { createHardenedServer, type ServerBounds } from './harden-server.ts';

/** So short that what a slow client meets is seen in milliseconds. */
const BOUNDS = { headersTimeoutMs: 60, requestTimeoutMs: 120, checkEveryMs: 10, lingerMs: 30 };
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n';
const POST = 'POST / HTTP/1.1\r\nHost: a\r\n';

let server: Server;

/** Answers GET at once and without reading a body, `/begin` only half, and others when all has come. */
async function listen(bounds: ServerBounds): Promise<void> {
  server = createHardenedServer((request, response) => {
    if (request.url === '/begin') response.writeHead(200).write('half');
    else if (request.method === 'GET') response.end('{"success":true}');
    else
      request
        .on('error', () => undefined)
        .on('end', () => response.end('{}'))
        .resume();
  }, bounds);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
}

function close(): void {
  server.closeAllConnections();
  server.close();
}

beforeEach(() => listen(BOUNDS));

afterEach(close);

function send(text: string): RawConnection {
  return openConnection((server.address() as AddressInfo).port, text);
}

describe('what is no request', () => {
  test.each([
    ['nonsense', 'nonsense\r\n\r\n', 400, 'malformed_request'],
    ['a bare line feed', 'GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n', 400, 'malformed_request'],
    [
      'two lengths',
      `${POST}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
      400,
      'malformed_request',
    ],
    [
      'a length beside chunks',
      `${POST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
      'malformed_request',
    ],
    ['20,000 bytes of headers', `${GET}X: ${'x'.repeat(20_000)}`, 431, 'headers_too_large'],
    ['a header that never ends', `${GET}X`, 408, 'request_timeout'],
    ['silence', '', 408, 'request_timeout'],
    ['a body that never ends', `${POST}Content-Length: 100\r\n\r\n{`, 408, 'request_timeout'],
  ])('such as %s gets the error envelope and is closed', async (_what, text, status, code) => {
    const { until, closed } = send(text);
    const answer = parseAnswer(await until(ENVELOPE));
    await closed;
    expect([answer.status, answer.body.success, answer.body.code]).toEqual([status, false, code]);
    expect(answer.body.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(answer.head).toContain(`X-Request-Id: ${answer.body.requestId}`);
    expect(answer.head).toContain('Connection: close');
  });

  test.each([
    ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400, 'malformed_request'],
    ['an unknown Expect', `${GET}Expect: wonders\r\n\r\n`, 417, 'expectation_failed'],
  ])('for %s gets the error envelope', async (_what, text, status, code) => {
    const answer = parseAnswer(await send(text).until(ENVELOPE));
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  test('is told also on a connection that has served before', async () => {
    const { socket, until, closed } = send(`${GET}\r\n`);
    await until(/"success":true/);
    socket.write('GET / HTTP/1.1\r\n');
    expect(await until(/request_timeout/)).toContain('HTTP/1.1 408 Request Timeout');
    await closed;
  });

  test('cuts off an answer that has begun, and writes nothing into it', async () => {
    const { socket, until, closed } = send(
      'POST /begin HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n',
    );
    await until(/half/);
    await closed;
    expect(await until(/half/)).not.toContain('408');
    expect(socket.closed).toBe(true);
  });

  test('is not HTTP/1.0 without a Host', async () => {
    expect(await send('GET / HTTP/1.0\r\n\r\n').until(/\}$/)).toContain(' 200 OK');
  });
});

describe('the rest of a body that was answered before it came', () => {
  const early = (): RawConnection => send(`${GET}Content-Length: 9\r\n\r\n`);

  test('is waited for a while, and then cut off', async () => {
    const { until, closed } = early();
    await until(/"success":true/);
    await closed;
  });

  test('leaves the connection usable when it comes', async () => {
    close();
    await listen({ ...BOUNDS, requestTimeoutMs: 60_000, lingerMs: 60_000 });
    const { socket, until } = early();
    await until(/"success":true/);
    socket.write(`123456789${GET}\r\n`);
    await until(/"success":true.*"success":true/s);
  });
});

test('a client that goes away in the midst of a body harms nobody else', async () => {
  const { socket } = send(`${POST}Content-Length: 100\r\n\r\n{`);
  await once(server, 'request');
  socket.destroy();
  await send(`${GET}\r\n`).until(/"success":true/);
});

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import express, { type RequestHandler } from 'express';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import {
  ENVELOPE,
  openConnection,
  parseAnswer,
  type RawConnection,
} from '../../../../../test/support/receivers/raw-connection.ts';
import { sendError } from '../send-error.ts';
import { createHardenedServer } from '../connections/harden-server.ts';
import { createReceiveBody } from './receive-body.ts';
import { createRequestMemory, type RequestMemory } from './request-memory.ts';

const LIMIT = 262_144;

let server: Server;
let memory: RequestMemory;
/** The server's side, in the order of their opening. */
let connections: Socket[];

beforeEach(async () => {
  const app = express();
  // One company alone may hold half of it: two of the largest bodies.
  memory = createRequestMemory(4 * LIMIT);
  const identify: RequestHandler = (request, response, next) => {
    response.locals.caller = { companyId: request.get('companyid') ?? 'comp_a' };
    next();
  };
  const answer: RequestHandler = (request, response) => {
    response.json({ bytes: (request.body as Buffer).length });
  };
  app.post('/', identify, createReceiveBody(memory), answer);
  const impatient = { maxBytes: LIMIT, withinMs: 1, freeChunks: 1_024 };
  app.post('/impatient', identify, createReceiveBody(memory, impatient), answer);
  app.use(sendError(createLogger('test', 'silent')));
  server = createHardenedServer(app);
  connections = [];
  server.on('connection', (socket) => connections.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

function post(headers: string, body = '', path = '/'): RawConnection {
  const text = `POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n${body}`;
  return openConnection((server.address() as AddressInfo).port, text);
}

/** Returns one chunk; an empty one ends the body. */
const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

describe('a body of 262,144 bytes', () => {
  test('is accepted with its length', async () => {
    const { until } = post(`Content-Length: ${LIMIT}`, 'x'.repeat(LIMIT));
    expect(await until(ENVELOPE)).toContain(`"bytes":${LIMIT}`);
  });

  test('is accepted without its length', async () => {
    const { until } = post('Transfer-Encoding: chunked', chunk(LIMIT) + chunk(0));
    expect(await until(ENVELOPE)).toContain(`"bytes":${LIMIT}`);
  });
});

describe('a body of one byte more', () => {
  test('is refused before a byte of it arrives', async () => {
    const { until } = post(`Content-Length: ${LIMIT + 1}`);
    const { status, body } = parseAnswer(await until(ENVELOPE));
    expect([status, body.code]).toEqual([413, 'body_too_large']);
  });

  test('is refused without its length as soon as that byte arrives, before the end', async () => {
    const { until } = post('Transfer-Encoding: chunked', chunk(LIMIT) + chunk(1));
    const { status, body } = parseAnswer(await until(ENVELOPE));
    expect([status, body.code]).toEqual([413, 'body_too_large']);
  });

  test('is refused when the client asks whether to send it', async () => {
    const { until } = post(`Expect: 100-continue\r\nContent-Length: ${LIMIT + 1}`);
    expect(await until(ENVELOPE)).toMatch(/^HTTP\/1\.1 413 /);
  });
});

test('an announced body gets 100 Continue when it will be accepted', async () => {
  const { socket, until } = post('Expect: 100-continue\r\nContent-Length: 2');
  await until(/^HTTP\/1\.1 100 Continue/);
  socket.write('{}');
  await until(/"bytes":2/);
});

test.each(['gzip', 'deflate', 'br', 'GZIP', 'identity, gzip'])(
  'a body with Content-Encoding %s is refused before it arrives',
  async (encoding) => {
    const { until } = post(`Content-Encoding: ${encoding}\r\nContent-Length: 9`);
    const { status, body } = parseAnswer(await until(ENVELOPE));
    expect([status, body.code]).toEqual([415, 'unsupported_media_type']);
  },
);

test('a body with Content-Encoding identity is accepted', async () => {
  await post('Content-Encoding: identity\r\nContent-Length: 2', '{}').until(/"bytes":2/);
});

test('a missing body is an empty one', async () => {
  await post('X: y').until(/"bytes":0/);
});

describe('bodies that are being read', () => {
  const half = `Content-Length: ${LIMIT}`;
  const unfinished = (): RawConnection => post(half, 'x'.repeat(LIMIT - 1));
  const untilHeld = (bytes: number) =>
    eventually(`${bytes} bytes`, () => memory.usedBytes() === bytes);

  test('are refused with 503 when their company holds too much memory, but not because of another company', async () => {
    const held = [unfinished(), unfinished()];
    await untilHeld(2 * LIMIT);
    const { status, body } = parseAnswer(
      await post('Content-Length: 9', '{"n": 12}').until(ENVELOPE),
    );
    expect([status, body.code]).toEqual([503, 'unavailable']);
    await post('companyid: comp_b\r\nContent-Length: 2', '{}').until(/"bytes":2/);
    for (const { socket } of held) socket.destroy();
    await untilHeld(0);
  });

  test('count as memory until the response is sent', async () => {
    const { socket, until } = unfinished();
    await untilHeld(LIMIT);
    socket.write('x');
    await until(ENVELOPE);
    await untilHeld(0);
  });
});

test('a body that does not arrive in its time is refused with 408', async () => {
  const { until } = post('Content-Length: 9', 'part', '/impatient');
  const { status, body } = parseAnswer(await until(ENVELOPE));
  expect([status, body.code]).toEqual([408, 'request_timeout']);
});

describe('a body in many small chunks', () => {
  const HEADERS = 'Transfer-Encoding: chunked';

  test('is accepted with four bytes in each', async () => {
    const { until } = post(HEADERS, chunk(4).repeat(20_000) + chunk(0));
    expect(await until(ENVELOPE)).toContain('"bytes":80000');
  });

  test('is accepted with one byte in each of a thousand', async () => {
    const { until } = post(HEADERS, chunk(1).repeat(1_000) + chunk(0));
    expect(await until(ENVELOPE)).toContain('"bytes":1000');
  });

  test('is refused with one byte in each of more, and read no further', async () => {
    const { socket, until } = post(HEADERS, chunk(1).repeat(1_367));
    const { status, body } = parseAnswer(await until(ENVELOPE));
    expect([status, body.code]).toEqual([400, 'chunks_too_small']);
    expect(memory.usedBytes()).toBe(0);
    const [accepted] = connections;
    const before = accepted?.bytesRead;
    await eventually('the server reads no more', () => accepted?.isPaused() === true);
    socket.write(chunk(1).repeat(10_000));
    await post('X: y').until(ENVELOPE);
    expect(accepted?.bytesRead).toBe(before);
  });

  test('costs its company the size of its buffer, and not of its chunks', async () => {
    post(HEADERS, chunk(1).repeat(1_000));
    await eventually('1,024 bytes', () => memory.usedBytes() === 1_024);
  });
});

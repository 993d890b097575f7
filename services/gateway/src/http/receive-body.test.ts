import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/logger.ts';
import express from 'express';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  ENVELOPE,
  openConnection,
  parseAnswer,
  type RawConnection,
} from '../../../../test/support/raw-connection.ts';
import { answerError } from './answer-error.ts';
import { createHardenedServer } from './harden-server.ts';
import { receiveBody } from './receive-body.ts';

const LIMIT = 262_144;

let server: Server;

beforeEach(async () => {
  const app = express();
  app.post('/', receiveBody, (request, response) => {
    response.json({ bytes: (request.body as Buffer).length });
  });
  app.use(answerError(createLogger('test', 'silent')));
  server = createHardenedServer(app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

function post(headers: string, body = ''): RawConnection {
  const text = `POST / HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n${body}`;
  return openConnection((server.address() as AddressInfo).port, text);
}

/** One chunk; the last one when it is empty. */
const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

describe('a body of 262,144 bytes', () => {
  test('is taken with its length', async () => {
    const { until } = post(`Content-Length: ${LIMIT}`, 'x'.repeat(LIMIT));
    expect(await until(ENVELOPE)).toContain(`"bytes":${LIMIT}`);
  });

  test('is taken without its length', async () => {
    const { until } = post('Transfer-Encoding: chunked', chunk(LIMIT) + chunk(0));
    expect(await until(ENVELOPE)).toContain(`"bytes":${LIMIT}`);
  });
});

describe('a body of one byte more', () => {
  test('is refused before a byte of it has come', async () => {
    const { until } = post(`Content-Length: ${LIMIT + 1}`);
    const { status, body } = parseAnswer(await until(ENVELOPE));
    expect([status, body.code]).toEqual([413, 'body_too_large']);
  });

  test('is refused without its length as soon as that byte comes, though it never ends', async () => {
    const { until } = post('Transfer-Encoding: chunked', chunk(LIMIT) + chunk(1));
    const { status, body } = parseAnswer(await until(ENVELOPE));
    expect([status, body.code]).toEqual([413, 'body_too_large']);
  });

  test('is not asked for when the client asks whether to send it', async () => {
    const { until } = post(`Expect: 100-continue\r\nContent-Length: ${LIMIT + 1}`);
    expect(await until(ENVELOPE)).toMatch(/^HTTP\/1\.1 413 /);
  });
});

test('a body that is announced is asked for when it will be taken', async () => {
  const { socket, until } = post('Expect: 100-continue\r\nContent-Length: 2');
  await until(/^HTTP\/1\.1 100 Continue/);
  socket.write('{}');
  await until(/"bytes":2/);
});

test.each(['gzip', 'deflate', 'br', 'GZIP', 'identity, gzip'])(
  'a body with Content-Encoding %s is refused before it comes',
  async (encoding) => {
    const { until } = post(`Content-Encoding: ${encoding}\r\nContent-Length: 9`);
    const { status, body } = parseAnswer(await until(ENVELOPE));
    expect([status, body.code]).toEqual([415, 'unsupported_media_type']);
  },
);

test('a body with Content-Encoding identity is taken', async () => {
  await post('Content-Encoding: identity\r\nContent-Length: 2', '{}').until(/"bytes":2/);
});

test('no body is an empty one', async () => {
  await post('X: y').until(/"bytes":0/);
});

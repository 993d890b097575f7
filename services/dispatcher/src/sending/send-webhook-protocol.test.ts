import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Socket } from 'node:net';
import { eventually } from '../../../../test/support/time/eventually.ts';
import {
  openLoneSender,
  TIMEOUT_MS,
  type LoneSender,
} from '../../../../test/support/process/lone-sender.ts';
import {
  openRawEndpoint,
  type RawEndpoint,
} from '../../../../test/support/receivers/raw-endpoint.ts';

let sender: LoneSender;
let endpoint: RawEndpoint;

beforeEach(async () => {
  sender = openLoneSender({ resolve: () => Promise.resolve([]) });
  endpoint = await openRawEndpoint();
});

afterEach(async () => {
  await sender.close();
  endpoint.close();
});

function sendTo(talk: (socket: Socket) => void) {
  endpoint.talk = talk;
  return sender.send(endpoint.origin);
}

const saying =
  (text: string) =>
  (socket: Socket): void =>
    void socket.end(text);

/** Expects that the attempt holds no connection, and that the next one succeeds. */
async function expectNothingLeft(): Promise<void> {
  await eventually('the client has released the request', () => sender.held() === 0);
  expect((await sendTo(saying('HTTP/1.1 204 No\r\n\r\n'))).outcome).toBe('success');
}

const OK = 'HTTP/1.1 200 OK\r\n';
const NO = 'HTTP/1.1 500 No\r\n';
const CHUNKED = 'transfer-encoding: chunked\r\n\r\n';

describe('an endpoint that fails without a status', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['resets the connection', (socket) => void socket.resetAndDestroy()],
    ['closes it without a response', (socket) => void socket.end()],
    ['speaks no HTTP', saying('SSH-2.0-OpenSSH_9.6\r\n')],
    ['answers with HTTP/0.9', saying('<p>ok</p>')],
    ['answers with a status that is no number', saying('HTTP/1.1 abc OK\r\n\r\n')],
    ['answers with HTTP/2 at once', saying('\0\0\x12\x04\0\0\0\0\0')],
    ['breaks off after an early hint', saying('HTTP/1.1 103 Early\r\n\r\n')],
    ['breaks off in its headers', saying(`${OK}x: `)],
    ['sends two content lengths', saying(`${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab`)],
    ['sends a content length and chunks', saying(`${OK}content-length: 1\r\n${CHUNKED}0\r\n\r\n`)],
    [
      'ends lines with LF alone',
      (socket) => socket.write('HTTP/1.1 200 OK\ncontent-length: 0\n\n'),
    ],
    ['sends NUL in a header', saying(`${OK}x: a\0b\r\n\r\n`)],
  ])('and %s is a connect_error', async (_what, talk) => {
    const nothing = { statusCode: null, response: null, responseHeaders: [] };
    expect(await sendTo(talk)).toMatchObject({ outcome: 'connect_error', ...nothing });
    await endpoint.allClosed();
    await expectNothingLeft();
  });
});

test('an endpoint may answer with 60 KiB of headers', async () => {
  const cookies = `set-cookie: ${'a'.repeat(20_000)}\r\n`.repeat(3);
  const attempt = await sendTo(saying(`${OK}${cookies}content-length: 2\r\n\r\nok`));
  expect(attempt).toMatchObject({ outcome: 'success', response: 'ok' });
});

describe('an endpoint that fails after its status', () => {
  test.each<[string, string, string, number]>([
    ['breaks off its body', `${OK}content-length: 9\r\n\r\npart`, 'success', 200],
    ['breaks off its chunks', `${OK}${CHUNKED}4\r\npart\r\n`, 'success', 200],
    ['sends a malformed chunk', `${OK}${CHUNKED}4\r\npart\r\nZZ\r\n`, 'success', 200],
    ['sends a malformed chunk', `${NO}${CHUNKED}4\r\npart\r\nZZ\r\n`, 'http_5xx', 500],
    [
      'sends a chunk length that no number holds',
      `${NO}${CHUNKED}4\r\npart\r\nfffffffffffffffff\r\n`,
      'http_5xx',
      500,
    ],
    [
      'sends more than its content length',
      `${OK}content-length: 4\r\n\r\npartHTTP/1.1 500 No\r\n\r\n`,
      'success',
      200,
    ],
  ])('and %s (%j) is judged by its status', async (_what, text, outcome, statusCode) => {
    expect(await sendTo(saying(text))).toMatchObject({ outcome, statusCode, response: 'part' });
    await endpoint.allClosed();
    await expectNothingLeft();
  });

  test('an endpoint that resets the connection is judged by its status', async () => {
    const attempt = sendTo((socket) => socket.write(`${NO}content-length: 9\r\n\r\npart`));
    await eventually('some of the body came', () => sender.readBytes() === 4);
    endpoint.sockets[0]?.resetAndDestroy();
    expect(await attempt).toMatchObject({ outcome: 'http_5xx', response: 'part' });
    await expectNothingLeft();
  });
});

describe('an endpoint that speaks HTTP/1.0', () => {
  test.each([
    ['ends its body by closing', 'HTTP/1.0 200 OK\r\n\r\ndone', 'success'],
    ['sends its content length', 'HTTP/1.0 503 No\r\ncontent-length: 4\r\n\r\ndone', 'http_5xx'],
  ])('and %s is understood', async (_what, text, outcome) => {
    expect(await sendTo(saying(text))).toMatchObject({ outcome, response: 'done' });
    await endpoint.allClosed();
    await expectNothingLeft();
  });
});

describe('an endpoint that sends informational responses that were not asked for', () => {
  const CREATED = 'HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok';

  test.each([
    ['100', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['100 twice', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(2)],
    ['100 that names a close', 'HTTP/1.1 100 Continue\r\nconnection: close\r\n\r\n'],
    ['102 and 103', 'HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nlink: </a>\r\n\r\n'],
  ])('is judged by its response, and its connection is kept: %s', async (_what, before) => {
    for (let request = 0; request < 2; request += 1) {
      const attempt = await sendTo((socket) => socket.write(before + CREATED));
      expect(attempt).toMatchObject({ outcome: 'success', statusCode: 201, response: 'ok' });
      await eventually('the connection is idle', () => sender.idle() === 1);
    }
    expect(endpoint.sockets).toHaveLength(1);
  });

  test.each([
    ['101', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['101 to another protocol', 'HTTP/1.1 101 S\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n'],
  ])('fails with %s', async (_what, text) => {
    const attempt = await sendTo((socket) => socket.write(text + CREATED));
    expect(attempt).toMatchObject({ outcome: 'connect_error', statusCode: null });
    await endpoint.allClosed();
    await expectNothingLeft();
  });
});

describe('an endpoint that ends a kept connection when the next request comes', () => {
  let requests: number;
  beforeEach(() => {
    requests = 0;
  });

  const answer = (socket: Socket): void => void socket.write(`${OK}content-length: 0\r\n\r\n`);
  async function keepConnection(): Promise<Socket> {
    await sendTo(answer);
    await eventually('the connection is idle', () => sender.idle() === 1);
    const [kept] = endpoint.sockets;
    if (!kept) throw new Error('no connection');
    return kept;
  }

  test.each<[string, (socket: Socket) => void]>([
    ['closes it', (socket) => void socket.end()],
    ['resets it', (socket) => void socket.resetAndDestroy()],
  ])('and %s gets the request again on a new one', async (_what, end) => {
    const kept = await keepConnection();
    const attempt = await sendTo((socket) => {
      requests += 1;
      if (socket === kept) end(socket);
      else answer(socket);
    });
    expect(attempt).toMatchObject({ outcome: 'success', statusCode: 200 });
    expect([requests, endpoint.sockets.length]).toEqual([2, 2]);
  });

  test.each(['ECONNRESET', 'EPIPE'])(
    'and resets it before the request is sent gets it on a new one, and once: %s',
    async (code) => {
      await keepConnection();
      const attempt = sendTo((socket) => {
        requests += 1;
        answer(socket);
      });
      sender.opened[0]?.destroy(Object.assign(new Error('reset'), { code }));
      expect(await attempt).toMatchObject({ outcome: 'success', statusCode: 200 });
      expect([requests, endpoint.sockets.length]).toEqual([1, 2]);
    },
  );

  test('gets it once more only, also when it kept other connections', async () => {
    await keepConnection();
    const attempt = await sendTo((socket) => {
      requests += 1;
      socket.end();
    });
    expect(attempt).toMatchObject({ outcome: 'connect_error', statusCode: null });
    expect(requests).toBe(2);
    await expectNothingLeft();
  });

  test('after a part of an answer does not get it again', async () => {
    const kept = await keepConnection();
    const attempt = await sendTo(() => {
      requests += 1;
      kept.end('HTTP/1.1 2');
    });
    expect(attempt).toMatchObject({ outcome: 'connect_error' });
    expect(requests).toBe(1);
  });

  test('after the deadline does not get it again', async () => {
    const kept = await keepConnection();
    const attempt = sendTo(() => {
      requests += 1;
    });
    await eventually('the request came', () => requests === 1);
    sender.timePasses(TIMEOUT_MS);
    kept.end();
    expect(await attempt).toMatchObject({ outcome: 'timeout' });
    await endpoint.allClosed();
    expect(requests).toBe(1);
  });
});

test('the next attempt succeeds after an endpoint closed an idle connection', async () => {
  await sendTo((socket) => {
    socket.write(`${OK}content-length: 0\r\n\r\n`);
  });
  endpoint.sockets[0]?.destroy();
  await endpoint.allClosed();
  await expectNothingLeft();
});

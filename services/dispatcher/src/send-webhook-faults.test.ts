import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { signerOf } from '@posthorn/domain/delivery-headers.ts';
import type { DueAttempt } from '@posthorn/domain/records.ts';
import { secretFromBytes } from '@posthorn/domain/signature.ts';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Agent, type Dispatcher } from 'undici';
import { sampleWebhook } from '../../../test/support/sample-webhook.ts';
import { createDeadlineSweep, type DeadlineSweep } from './deadline-sweep.ts';
import { createGuardedConnect, type Resolve } from './guarded-connect.ts';
import { createSendWebhook } from './send-webhook.ts';

const TIMEOUT_MS = 200;
const policy = { allowLoopback: true, allowHttp: true, allowCidrs: [] };
const due: DueAttempt = {
  isCancelled: false,
  ...{ messageId: 'msg_01hf2m6q7xabcdefghjkmnpqrs', webhookId: 'wh_1', companyId: 'comp_1' },
  ...{ appId: null, createdAtMs: 1, attemptNumber: 1, trigger: 'first', dueAtMs: 1, payload: null },
};

let nowMs = 0;
let agent: Agent;
let deadlines: DeadlineSweep;
let server: Server;
let origin = '';
let sockets: Socket[] = [];
let closings: Promise<unknown>[] = [];
let onRequest: (socket: Socket) => void;
let resolveName: Resolve;
/** Of the answer, what got as far as our handler. */
let readBytes = 0;
let onStatus: () => void;

beforeEach(async () => {
  [nowMs, readBytes, sockets, closings] = [0, 0, [], []];
  [onRequest, onStatus] = [() => undefined, () => undefined];
  resolveName = () => Promise.resolve([]);
  const resolve: Resolve = (name) => resolveName(name);
  agent = new Agent({
    connect: createGuardedConnect({ policy, connectTimeoutMs: 5_000, resolve }),
  });
  deadlines = createDeadlineSweep(() => nowMs);
  server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined));
    closings.push(new Promise((closed) => socket.on('close', closed)));
    socket.once('data', () => {
      onRequest(socket);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  deadlines.stop();
  await agent.destroy();
  for (const socket of sockets) socket.destroy();
  server.close();
});

/** Tells the test what has arrived, so that it need not wait by the clock. */
const watched: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
  dispatch(options, {
    ...handler,
    onResponseStart(...event) {
      handler.onResponseStart?.(...event);
      onStatus();
    },
    onResponseData(controller, chunk) {
      readBytes += chunk.length;
      handler.onResponseData?.(controller, chunk);
    },
  });

function sendTo(talk: (socket: Socket) => void, to = origin) {
  onRequest = talk;
  const webhook = sampleWebhook(1, {
    ...{ url: to, secret: secretFromBytes(Buffer.alloc(32, 7)) },
    authMethod: { method: 'basic', username: 'u', password: 'p' },
  });
  const post = createSendWebhook({
    ...{ agent: agent.compose(watched), deadlines, timeoutMs: TIMEOUT_MS, userAgent: 'Posthorn/1' },
    ...{ wallClockMs: () => 0, monotonicMs: () => nowMs },
  });
  const loaded = { webhook, signer: signerOf(webhook), origin: to, path: '/' };
  return post(due, Buffer.from('{}'), loaded);
}

const timePasses = (ms: number): void => {
  nowMs += ms;
  deadlines.tick();
};
function writeForever(socket: Socket): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write('x'.repeat(16_384)));
  };
  socket.on('drain', more);
  more();
}

const NOT_FOUND = Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
const NOTHING = { statusCode: null, response: null, responseHeaders: [] };

describe('an endpoint', () => {
  test.each([
    ['nothing', ''],
    ['a header that never ends', 'HTTP/1.1 200 OK\r\nx-slow: '],
  ])('that answers %s is given up when the time is over, and not before', async (_what, start) => {
    let isOver = false;
    let attempt: Promise<unknown> = Promise.resolve();
    await new Promise((asked) => {
      attempt = sendTo((socket) => {
        asked(socket.write(start));
      }).finally(() => (isOver = true));
    });
    timePasses(TIMEOUT_MS - 1);
    await Promise.resolve();
    expect(isOver).toBe(false);
    timePasses(1);
    expect(await attempt).toMatchObject({ outcome: 'timeout', durationMs: TIMEOUT_MS, ...NOTHING });
    await Promise.all(closings);
  });

  test('whose name is never resolved is given up when the time is over', async () => {
    const asked = new Promise<void>((resolve) => {
      resolveName = () => {
        resolve();
        return new Promise(() => undefined);
      };
    });
    const attempt = sendTo(() => undefined, 'http://hook.example.com');
    await asked;
    timePasses(TIMEOUT_MS);
    expect(await attempt).toMatchObject({ outcome: 'timeout', ...NOTHING });
  });

  test.each([
    ['HTTP/1.1 200 OK', 'success'],
    ['HTTP/1.1 500 No', 'http_5xx'],
  ])('that answers %s and then stalls is judged by its status', async (line, outcome) => {
    const arrived = new Promise<void>((resolve) => (onStatus = resolve));
    const attempt = sendTo((socket) => socket.write(`${line}\r\ncontent-length: 1000\r\n\r\npart`));
    await arrived;
    timePasses(TIMEOUT_MS);
    expect(await attempt).toMatchObject({ outcome });
  });

  test('that breaks off behind a 2xx status has got its delivery', async () => {
    const attempt = await sendTo((socket) =>
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart'),
    );
    expect(attempt).toMatchObject({ outcome: 'success', statusCode: 200, response: 'part' });
  });

  test.each([
    ['200 OK', 'success'],
    ['503 No', 'http_5xx'],
  ])('that sends an endless body behind %s is cut at 64 KiB', async (status, outcome) => {
    const attempt = await sendTo((socket) => {
      socket.write(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`);
      writeForever(socket);
    });
    expect(attempt).toMatchObject({ outcome, response: 'x'.repeat(4_096) });
    // The chunk that crosses the limit is as large as one read of the socket.
    expect(readBytes).toBeLessThanOrEqual(65_536 * 2);
    await Promise.all(closings);
  });

  test('that sends 100 kB of headers is cut', async () => {
    const attempt = await sendTo((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(100_000)}\r\n\r\n`),
    );
    expect(attempt).toMatchObject({ outcome: 'response_too_large', ...NOTHING });
  });

  test.each<[string, (socket: Socket) => void]>([
    ['resets the connection', (socket) => void socket.resetAndDestroy()],
    ['closes it without an answer', (socket) => void socket.end()],
    ['speaks no HTTP', (socket) => void socket.end('SSH-2.0-OpenSSH_9.6\r\n')],
    ['breaks off after an early hint', (socket) => void socket.end('HTTP/1.1 103 Early\r\n\r\n')],
    ['breaks off in its headers', (socket) => void socket.end('HTTP/1.1 200 OK\r\nx: ')],
  ])('that %s is a connect_error', async (_what, talk) => {
    expect(await sendTo(talk)).toMatchObject({ outcome: 'connect_error', ...NOTHING });
  });

  test.each<[string, Resolve, string]>([
    ['whose name is unknown', () => Promise.reject(NOT_FOUND), 'dns_error'],
    [
      'that is private',
      () => Promise.resolve([{ address: '10.0.0.1', family: 4 }]),
      'egress_blocked',
    ],
  ])('%s is never connected to', async (_what, resolve, outcome) => {
    resolveName = resolve;
    expect(await sendTo(() => undefined, 'http://hook.example.com')).toMatchObject({
      outcome,
      ...NOTHING,
    });
    expect(sockets).toEqual([]);
  });
});

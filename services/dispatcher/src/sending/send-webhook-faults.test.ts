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
  writeForever,
  type RawEndpoint,
} from '../../../../test/support/receivers/raw-endpoint.ts';
import { LookupFailedError, type Resolve } from './connect/resolve-host.ts';

const NOTHING = { statusCode: null, response: null, responseHeaders: [] };

let sender: LoneSender;
let endpoint: RawEndpoint;
let resolveName: Resolve;

beforeEach(async () => {
  resolveName = () => Promise.reject(new LookupFailedError(null));
  sender = openLoneSender({ resolve: (name) => resolveName(name) });
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

/** Sends a request. Resolves once it has reached the endpoint, while the attempt is still under way. */
async function ask(talk: (socket: Socket) => void) {
  let attempt: ReturnType<LoneSender['send']> | null = null;
  await new Promise<void>((asked) => {
    attempt = sendTo((socket) => {
      talk(socket);
      asked();
    });
  });
  return { ended: () => attempt };
}

/** Expects that the attempt holds no connection, and that the next one succeeds. */
async function expectNothingLeft(): Promise<void> {
  await eventually('the client has released the request', () => sender.held() === 0);
  const next = await sendTo((socket) => socket.end('HTTP/1.1 204 No\r\n\r\n'));
  expect(next.outcome).toBe('success');
}

describe('an endpoint [security]', () => {
  test.each([
    ['nothing', ''],
    ['a header that never ends', 'HTTP/1.1 200 OK\r\nx-slow: '],
    ['two early hints', 'HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 103 Early\r\n\r\n'],
  ])('that sends %s times out at the deadline, and not before', async (_what, start) => {
    let isOver = false;
    const attempt = await ask((socket) => socket.write(start));
    void attempt.ended()?.then(() => (isOver = true));
    sender.timePasses(TIMEOUT_MS - 1);
    await Promise.resolve();
    expect(isOver).toBe(false);
    sender.timePasses(1);
    const over = { outcome: 'timeout', durationMs: TIMEOUT_MS, ...NOTHING };
    expect(await attempt.ended()).toMatchObject(over);
    await endpoint.allClosed();
    await expectNothingLeft();
  });

  test('that drips its headers times out at the deadline', async () => {
    const attempt = await ask((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const dripping = setInterval(() => socket.write('x: y\r\n'), 1);
      socket.once('close', () => {
        clearInterval(dripping);
      });
    });
    sender.timePasses(TIMEOUT_MS);
    expect(await attempt.ended()).toMatchObject({ outcome: 'timeout', ...NOTHING });
    await endpoint.allClosed();
    await expectNothingLeft();
  });

  test.each([
    ['200 OK', 'success'],
    ['500 No', 'http_5xx'],
  ])('that drips its body after %s is judged by its status', async (status, outcome) => {
    const attempt = await ask((socket) => {
      socket.write(`HTTP/1.1 ${status}\r\ncontent-length: 100000000\r\n\r\n`);
      const dripping = setInterval(() => socket.write('x'), 1);
      socket.once('close', () => {
        clearInterval(dripping);
      });
    });
    await eventually('some of the body came', () => sender.readBytes() > 2);
    sender.timePasses(TIMEOUT_MS);
    expect(await attempt.ended()).toMatchObject({ outcome });
    await endpoint.allClosed();
    await expectNothingLeft();
  });

  test('whose name is never resolved times out at the deadline', async () => {
    let attempt: ReturnType<LoneSender['send']> | undefined;
    await new Promise<void>((asked) => {
      resolveName = () => {
        asked();
        return new Promise(() => undefined);
      };
      attempt = sender.send('http://hook.example.com');
    });
    sender.timePasses(TIMEOUT_MS);
    expect(sender.held()).toBe(0);
    expect(await attempt).toMatchObject({ outcome: 'timeout', ...NOTHING });
  });

  test('that never ends the TLS handshake times out at the deadline, with its connection', async () => {
    resolveName = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
    const { port } = new URL(endpoint.origin);
    const attempt = sender.send(`https://hook.example.com:${port}`);
    await eventually('the handshake begins', () => endpoint.sockets[0]?.bytesRead);
    sender.timePasses(TIMEOUT_MS);
    expect(sender.held()).toBe(0);
    expect(await attempt).toMatchObject({ outcome: 'timeout', ...NOTHING });
    await endpoint.allClosed();
  });

  test('whose name is unknown is a dns_error', async () => {
    const attempt = await sender.send('http://hook.example.com');
    expect(attempt).toMatchObject({ outcome: 'dns_error', ...NOTHING });
  });

  test.each([
    ['200 OK', 'success'],
    ['503 No', 'http_5xx'],
  ])('that sends an endless body after %s is read for 64 KiB', async (status, outcome) => {
    const attempt = await sendTo((socket) => {
      socket.write(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`);
      writeForever(socket);
    });
    expect(attempt).toMatchObject({ outcome, response: 'x'.repeat(4_096) });
    // The piece that crosses the limit is the last.
    expect(sender.readBytes()).toBeLessThanOrEqual(65_536 + 4_096);
    await endpoint.allClosed();
    await expectNothingLeft();
  });

  const ONE_BYTE = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n';

  test.each([
    ['20,000 trailers', `${ONE_BYTE}0\r\n${'a:b\r\n'.repeat(20_000)}`],
    ['a trailer of 20 kB', `${ONE_BYTE}0\r\na: ${'x'.repeat(20_000)}`],
    ['a chunk extension of 20 kB', `${ONE_BYTE}1;${'x'.repeat(20_000)}`],
    [
      '1 kB of chunk extension for each byte',
      ONE_BYTE + `1;${'x'.repeat(1_000)}\r\nx\r\n`.repeat(500),
    ],
  ])(
    'that sends %s and hangs is judged by its status before undici times out (10 s)',
    async (_what, text) => {
      const attempt = await sendTo((socket) => socket.write(text));
      expect(attempt).toMatchObject({ outcome: 'success', statusCode: 200 });
      expect(attempt.response).toMatch(/^x+$/);
      await endpoint.allClosed();
      await expectNothingLeft();
    },
  );

  test.each<[string, string[]]>([
    ['1 KiB of trailers', ['1\r\nx\r\n'.repeat(9)]],
    ['64 KiB in chunks of four bytes', [`00000004\r\nxxxx\r\n`.repeat(16_384)]],
    ['a large head', []],
  ])('that sends %s is read to the end, and its connection kept', async (_what, chunks) => {
    const head = `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(9_000)}\r\ntransfer-encoding: chunked\r\n\r\n`;
    const trailers = `0\r\n${`a: ${'b'.repeat(97)}\r\n`.repeat(10)}\r\n`;
    for (let request = 0; request < 3; request += 1) {
      await sendTo((socket) => socket.write([head, ...chunks, trailers].join('')));
      await eventually('the connection is idle', () => sender.idle() === 1);
    }
    expect(endpoint.sockets).toHaveLength(1);
  });

  test.each<[string, (socket: Socket) => void]>([
    [
      '100 kB in one header',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}`),
    ],
    [
      '100 kB of headers',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(20_000)}`),
    ],
    [
      'endless early hints',
      (socket) => {
        writeForever(socket, 'HTTP/1.1 103 Early\r\n\r\n'.repeat(100));
      },
    ],
    [
      'endless headers',
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        writeForever(socket, 'x: y\r\n'.repeat(1_000));
      },
    ],
  ])('that sends %s is response_too_large', async (_what, talk) => {
    expect(await sendTo(talk)).toMatchObject({ outcome: 'response_too_large', ...NOTHING });
    await endpoint.allClosed();
    await expectNothingLeft();
  });
});

import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { once } from 'node:events';
import { Socket } from 'node:net';
import {
  createResponseHeads,
  HeadTooLargeError,
  isUnansweredReuse,
  noteContent,
  prepareSocket,
  type ResponseHeads,
} from './response-heads.ts';

function socketWith(text: string): Socket {
  const socket = new Socket();
  socket.push(text);
  prepareSocket(socket);
  return socket;
}

function readAll(socket: Socket): Buffer[] {
  const pieces: Buffer[] = [];
  for (let piece = socket.read() as Buffer | null; piece; piece = socket.read() as Buffer | null) {
    pieces.push(piece);
    noteContent();
  }
  return pieces;
}

test('received data is read in pieces, complete and in order [security]', () => {
  const text = 'abc'.repeat(3_000);
  const pieces = readAll(socketWith(text));
  expect(pieces.map(({ length }) => length)).toEqual([4_096, 4_096, 808]);
  expect(Buffer.concat(pieces).toString()).toBe(text);
});

test('a read of a number of bytes returns that many [security]', () => {
  expect(String(socketWith('abcdef').read(2))).toBe('ab');
});

test('a destroyed socket returns nothing [security]', () => {
  const socket = socketWith('abc');
  socket.destroy();
  expect(socket.read()).toBeNull();
});

test.each([
  ['is marked within 2 s', 2_000, true],
  ['is not marked later, when the endpoint may have worked on the request', 2_001, false],
])('the reset of a kept connection without an answer %s', async (_what, afterMs, isMarked) => {
  let nowMs = 50_000;
  const socket = new Socket();
  socket._write = (_chunk, _encoding, done) => {
    done();
  };
  prepareSocket(socket, () => nowMs);
  socket.write('first');
  socket.push('HTTP/1.1 204 No\r\n\r\n');
  readAll(socket);
  nowMs += 10_000;
  socket.write('second');
  nowMs += afterMs;
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
  const failed = once(socket, 'error');
  socket.destroy(reset);
  await failed;
  expect(isUnansweredReuse(reset)).toBe(isMarked);
});

describe('the error of a write', () => {
  let socket: Socket;
  const seen: unknown[] = [];

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick'] });
    seen.length = 0;
    socket = new Socket();
    socket._writev = (_chunks, done) => {
      done(new Error('reset'));
    };
    socket._write = (_chunk, _encoding, done) => {
      done(new Error('reset'));
    };
    prepareSocket(socket);
    socket.on('readable', () => {
      seen.push(String(socket.read()));
    });
    socket.on('error', ({ message }) => seen.push(message));
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test.each([
    ['of one piece', 1],
    ['of several', 2],
  ])('comes a second after the last read, for a write %s', async (_what, pieces) => {
    socket.cork();
    for (let piece = 0; piece < pieces; piece += 1) socket.write('body');
    socket.uncork();
    await jest.advanceTimersByTimeAsync(999);
    socket.push('HTTP/1.1 200 OK\r\n\r\n');
    await jest.advanceTimersByTimeAsync(999);
    expect(seen).toEqual(['HTTP/1.1 200 OK\r\n\r\n']);
    await jest.advanceTimersByTimeAsync(1);
    expect(seen.slice(1)).toEqual(['reset']);
  });

  test('leaves no timer behind when the socket is closed before', async () => {
    socket.write('body');
    expect(jest.getTimerCount()).toBe(1);
    const closed = once(socket, 'close');
    socket.destroy();
    // Without a turn of the event loop, in which what other files left in this process could set timers.
    await closed;
    expect(jest.getTimerCount()).toBe(0);
    expect(seen).toEqual([]);
  });
});

describe('response heads', () => {
  const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

  let heads: ResponseHeads;
  beforeEach(() => {
    heads = createResponseHeads();
    heads.begin();
  });

  function passAll(...chunks: string[]): string {
    return chunks.map((chunk) => heads.pass(Buffer.from(chunk, 'latin1')) ?? '').join('');
  }

  /** The text in chunks of this many characters. */
  const cut = (text: string, size: number): string[] =>
    text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];

  const SKIPPED: [string, string][] = [
    ['100', CONTINUE],
    ['100 twice', CONTINUE + CONTINUE],
    ['100 without a reason', 'HTTP/1.1 100\r\n\r\n'],
    ['100 of HTTP/1.0', 'HTTP/1.0 100 Continue\r\n\r\n'],
    ['100 that names a close', 'HTTP/1.1 100 Continue\r\nconnection: close\r\n\r\n'],
    ['102 with headers', 'HTTP/1.1 102 Processing\r\nx: y\r\ncontent-length: 5\r\n\r\n'],
    ['103 with links', `HTTP/1.1 103 Early Hints\r\nlink: ${'<a>, '.repeat(100)}<b>\r\n\r\n`],
    ['100, then an empty line', `${CONTINUE}\r\n`],
    ['100, 102 and 103', `${CONTINUE}HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nlink: <a>\r\n\r\n`],
  ];

  describe('an informational response', () => {
    test.each(SKIPPED)('is left out, wherever reads end: %s', (_what, before) => {
      for (let size = 1; size <= before.length + OK.length; size += 1) {
        heads.begin();
        expect(passAll(...cut(before + OK, size))).toBe(OK);
      }
    });

    test('is left out before each response of a connection, and not in one', () => {
      expect(passAll(CONTINUE + OK, CONTINUE)).toBe(OK + CONTINUE);
      heads.begin();
      expect(passAll(CONTINUE, OK)).toBe(OK);
    });

    test('stays without a request, so that the HTTP client sees it', () => {
      expect(createResponseHeads().pass(Buffer.from(CONTINUE))?.toString()).toBe(CONTINUE);
    });
  });

  test.each(['SSH-2.0-OpenSSH', 'x', '<p>ok</p>', 'HTTP/2 100', 'HTTP/1.2 200 OK\r\n'])(
    '%j is no head and stays as it is',
    (text) => {
      expect(passAll(text)).toBe(text);
      heads.begin();
      expect(passAll(...cut(text, 1))).toBe(text);
    },
  );

  test('a change of protocol that was not asked for stays', () => {
    const text = 'HTTP/1.1 101 Switching Protocols\r\n\r\n';
    expect(passAll(text)).toBe(text);
  });

  describe('the head of a response', () => {
    test('is passed on at once, with what came behind it', () => {
      for (const size of [1, 7, 4_096]) {
        heads.begin();
        const passed = cut(OK, size).flatMap((chunk) => heads.pass(Buffer.from(chunk)) ?? []);
        expect(passed[0]?.toString()).toMatch(/^HTTP[^]*\r\n\r\n/);
        expect(Buffer.concat(passed).toString()).toBe(OK);
      }
    });

    test('has 64 KiB in 256 lines at most', () => {
      const line = `x: ${'y'.repeat(250)}\r\n`;
      const largest = `HTTP/1.1 200 OK\r\n${line.repeat(255)}\r\n`;
      for (const size of [1, 4_096]) {
        heads.begin();
        expect(passAll(...cut(largest, size))).toBe(largest);
      }
    });

    test.each([
      ['bytes in one header', `x: ${'y'.repeat(65_536)}`, 4_096],
      ['bytes in one header, byte by byte', `x: ${'y'.repeat(65_536)}`, 1],
      ['lines', `${'x: y\r\n'.repeat(257)}\r\n`, 4_096],
    ])('is refused when it has more %s', (_what, text, size) => {
      expect(() => passAll(...cut(`HTTP/1.1 200 OK\r\n${text}`, size))).toThrow(HeadTooLargeError);
    });
  });

  describe('a head with a line feed alone, which the HTTP client refuses', () => {
    test.each([
      'HTTP/1.1 200 OK\nContent-Length: 2\n\nok',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\n',
    ])('is passed on without its end: %j', (text) => {
      for (const size of [1, 7, 4_096]) {
        heads.begin();
        expect(passAll(...cut(text, size))).toBe(text);
      }
    });

    test('is refused here when it has too many lines', () => {
      const text = `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(257)}\n`;
      expect(() => passAll(...cut(text, 4_096))).toThrow(HeadTooLargeError);
    });
  });

  describe('informational responses without an end', () => {
    test.each([
      ['17 of them', CONTINUE.repeat(17), 1_000],
      [
        '64 KiB in 16 of them',
        `HTTP/1.1 103 E\r\nlink: ${'x'.repeat(4_080)}\r\n\r\n`.repeat(16),
        4_096,
      ],
      ['64 KiB of one, byte by byte', `HTTP/1.1 103 E\r\nlink: ${'x'.repeat(65_536)}`, 1],
      ['empty lines', '\r\n'.repeat(32_769), 2],
    ])('are refused: %s', (_what, text, size) => {
      expect(() => passAll(...cut(text, size), 'HTTP/1.1 2')).toThrow(HeadTooLargeError);
    });

    test('may be 16', () => {
      expect(passAll(CONTINUE.repeat(16) + OK)).toBe(OK);
    });
  });
});

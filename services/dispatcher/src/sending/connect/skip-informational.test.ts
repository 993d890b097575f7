import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createInformationalSkipper,
  TooManyInformationalError,
  type InformationalSkipper,
} from './skip-informational.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

let skipper: InformationalSkipper;
beforeEach(() => {
  skipper = createInformationalSkipper();
  skipper.begin();
});

function skipAll(...chunks: string[]): string {
  return chunks.map((chunk) => skipper.skip(Buffer.from(chunk, 'latin1')) ?? '').join('');
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
      skipper.begin();
      expect(skipAll(...cut(before + OK, size))).toBe(OK);
    }
  });

  test('is left out before each response of a connection, and not in one', () => {
    expect(skipAll(CONTINUE + OK, CONTINUE)).toBe(OK + CONTINUE);
    skipper.begin();
    expect(skipAll(CONTINUE, OK)).toBe(OK);
  });

  test('stays without a request, so that the HTTP client sees it', () => {
    expect(createInformationalSkipper().skip(Buffer.from(CONTINUE))?.toString()).toBe(CONTINUE);
  });
});

test.each([
  ...['HTTP/1.1 200 OK', 'HTTP/1.1 2', 'HTTP/1.1 101 Switching Protocols\r\n\r\n', 'HTTP/2 100'],
  ...['SSH-2.0', 'x', 'HTTP/1.1 1xx'],
])('%j stays as it is', (text) => {
  expect(skipAll(text)).toBe(text);
  skipper.begin();
  expect(skipAll(...cut(text, 1))).toBe(text);
});

describe('informational responses without an end', () => {
  test.each([
    ['17 of them', CONTINUE.repeat(17), 1_000],
    ['16 KiB of one', `HTTP/1.1 103 E\r\n${'link: <a>\r\n'.repeat(1_600)}`, 1_000],
    ['16 KiB of one, byte by byte', `HTTP/1.1 103 E\r\n${'x'.repeat(16_384)}`, 1],
    ['empty lines', '\r\n'.repeat(8_193), 2],
  ])('are refused: %s', (_what, text, size) => {
    expect(() => skipAll(...cut(text, size))).toThrow(TooManyInformationalError);
  });

  test('may be 16', () => {
    expect(skipAll(CONTINUE.repeat(16) + OK)).toBe(OK);
  });
});

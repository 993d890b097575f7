import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { createResponseCapture, safeHeaders } from './response-capture.ts';

describe('the capture of a response body', () => {
  test('keeps the first 4 KiB, also when they come in pieces', () => {
    const capture = createResponseCapture();
    expect(capture.add(Buffer.alloc(4_095, 'a'))).toBe(true);
    expect(capture.add(Buffer.from('bcd'))).toBe(true);
    expect(capture.add(Buffer.from('efg'))).toBe(true);
    expect(capture.text()).toBe(`${'a'.repeat(4_095)}b`);
  });

  test('asks for no more once 64 KiB were read', () => {
    const capture = createResponseCapture();
    expect(capture.add(Buffer.alloc(65_536))).toBe(true);
    expect(capture.add(Buffer.alloc(1))).toBe(false);
  });

  test('keeps 4 KiB of a chunk that is larger than all that is read', () => {
    const capture = createResponseCapture();
    expect(capture.add(Buffer.alloc(1_000_000, 'x'))).toBe(false);
    expect(capture.text()).toBe('x'.repeat(4_096));
  });

  test('copies chunks, so that the socket may reuse its buffer', () => {
    const capture = createResponseCapture();
    const chunk = Buffer.from('before');
    capture.add(chunk);
    chunk.fill('x');
    expect(capture.text()).toBe('before');
  });

  test('asks for no more after many chunks of one byte, and for all of a body in pieces of four', () => {
    const dripped = createResponseCapture();
    const answers = Array.from({ length: 1_366 }, () => dripped.add(Buffer.from('x')));
    expect(answers.indexOf(false)).toBe(1_365);
    expect(dripped.text()).toBe('x'.repeat(1_366));
    const slow = createResponseCapture();
    expect(Array.from({ length: 16_384 }, () => slow.add(Buffer.alloc(4))).every(Boolean)).toBe(
      true,
    );
  });

  test('returns empty text when no body came', () => {
    expect(createResponseCapture().text()).toBe('');
  });

  test('decodes a character that is split over two chunks, and replaces bytes that are not UTF-8', () => {
    const capture = createResponseCapture();
    const [first, ...others] = Buffer.from('é');
    capture.add(Buffer.from([first ?? 0]));
    capture.add(Buffer.from([...others, 0xff]));
    expect(capture.text()).toBe('é\ufffd');
  });
});

describe('the text of a compressed body', () => {
  const json = JSON.stringify({ error: 'é'.repeat(500) });
  function textOf(body: Buffer, encoding: string, keptBytes?: number): string | null {
    const capture = createResponseCapture(keptBytes);
    capture.add(body);
    return capture.text(encoding);
  }

  test.each<[string, Buffer]>([
    ['gzip', gzipSync(json)],
    [' X-GZIP', gzipSync(json)],
    ['deflate', deflateSync(json)],
    ['deflate', deflateRawSync(json)],
    ['deflate', deflateRawSync(json, { level: 0 })],
    ['identity', Buffer.from(json)],
    ['', Buffer.from(json)],
  ])('is what was compressed: %j', (encoding, body) => {
    expect(textOf(body, encoding)).toBe(json);
  });

  test('is its beginning when only the beginning of the body is kept', () => {
    const text = Array.from({ length: 9_000 }, (_, index) => index).join();
    expect(text.startsWith(textOf(gzipSync(text), 'gzip') ?? '-')).toBe(true);
    expect(textOf(gzipSync(text), 'gzip')).toHaveLength(4_096);
  });

  test.each<[string, (text: string) => Buffer]>([
    ['gzip', (text) => gzipSync(text)],
    ['deflate', (text) => deflateSync(text)],
    ['deflate', (text) => deflateRawSync(text)],
  ])('is its beginning when it is far larger than its body: %s', (encoding, compress) => {
    const errors = Array.from({ length: 3_000 }, (_, index) => ({
      field: index % 7,
      error: 'missing',
    }));
    for (const text of [JSON.stringify(errors), 'x'.repeat(4_000_000)]) {
      expect(textOf(compress(text), encoding)).toBe(text.slice(0, 4_096));
    }
  });

  test.each<[string, Buffer]>([
    ['br', brotliCompressSync(json)],
    ['gzip, gzip', gzipSync(gzipSync(json))],
    ['gzip', Buffer.from(json)],
    ['deflate', gzipSync(json)],
  ])('is none for %s that is not known or wrong', (encoding, body) => {
    expect(textOf(body, encoding)).toBeNull();
  });

  test('is empty when no body came', () => {
    expect(createResponseCapture().text('gzip')).toBe('');
  });
});

describe('the response headers that are kept', () => {
  test('include none that may carry a session or a secret', () => {
    const headers = {
      'Content-Type': 'text/plain',
      server: 'x',
      'retry-after': '5',
      date: undefined,
    };
    const secrets = {
      'set-cookie': ['a=1'],
      authorization: 'Basic x',
      'x-api-key': 'k',
      link: '<x>',
    };
    expect(safeHeaders({ ...headers, ...secrets })).toEqual([
      { key: 'Content-Type', value: 'text/plain' },
      { key: 'server', value: 'x' },
      { key: 'retry-after', value: '5' },
    ]);
  });

  test('are cut at 256 characters', () => {
    expect(safeHeaders({ server: 'x'.repeat(300) })).toEqual([
      { key: 'server', value: 'x'.repeat(256) },
    ]);
  });

  test('join a repeated header into one', () => {
    expect(safeHeaders({ via: ['a', 'b'] })).toEqual([{ key: 'via', value: 'a,b' }]);
  });
});

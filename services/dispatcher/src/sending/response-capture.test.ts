import { describe, expect, test } from '@jest/globals';
import { createResponseCapture, safeHeaders } from './response-capture.ts';

describe('the capture of an answer', () => {
  test('keeps the first 4 KiB, also when they come in pieces', () => {
    const capture = createResponseCapture();
    expect(capture.take(Buffer.alloc(4_095, 'a'))).toBe(true);
    expect(capture.take(Buffer.from('bcd'))).toBe(true);
    expect(capture.take(Buffer.from('efg'))).toBe(true);
    expect(capture.text()).toBe(`${'a'.repeat(4_095)}b`);
  });

  test('reads 64 KiB and wants no more after that', () => {
    const capture = createResponseCapture();
    expect(capture.take(Buffer.alloc(65_536))).toBe(true);
    expect(capture.take(Buffer.alloc(1))).toBe(false);
  });

  test('keeps 4 KiB of one chunk that is too large', () => {
    const capture = createResponseCapture();
    expect(capture.take(Buffer.alloc(1_000_000, 'x'))).toBe(false);
    expect(capture.text()).toBe('x'.repeat(4_096));
  });

  test('is a copy: the buffer of the socket may be used again', () => {
    const capture = createResponseCapture();
    const chunk = Buffer.from('before');
    capture.take(chunk);
    chunk.fill('x');
    expect(capture.text()).toBe('before');
  });

  test('is empty text when no body came', () => {
    expect(createResponseCapture().text()).toBe('');
  });

  test('reads a character that two chunks share, and marks bytes that are no text', () => {
    const capture = createResponseCapture();
    const [first, ...others] = Buffer.from('é');
    capture.take(Buffer.from([first ?? 0]));
    capture.take(Buffer.from([...others, 0xff]));
    expect(capture.text()).toBe('é\ufffd');
  });
});

describe('the headers that are kept', () => {
  test('are those that help, and none that may hold a session or a secret', () => {
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

  test('show a repeated header as one', () => {
    expect(safeHeaders({ via: ['a', 'b'] })).toEqual([{ key: 'via', value: 'a,b' }]);
  });
});

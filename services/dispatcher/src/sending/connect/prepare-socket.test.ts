import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { isUnansweredReuse, noteContent, prepareSocket } from './prepare-socket.ts';

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

test('received data is read in pieces, complete and in order', () => {
  const text = 'abc'.repeat(3_000);
  const pieces = readAll(socketWith(text));
  expect(pieces.map(({ length }) => length)).toEqual([4_096, 4_096, 808]);
  expect(Buffer.concat(pieces).toString()).toBe(text);
});

test('a read of a number of bytes returns that many', () => {
  expect(String(socketWith('abcdef').read(2))).toBe('ab');
});

test('a destroyed socket returns nothing', () => {
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

import { expect, test } from '@jest/globals';
import { Socket } from 'node:net';
import { noteContent, prepareSocket } from './prepare-socket.ts';

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

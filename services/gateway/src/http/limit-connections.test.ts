import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { limitConnections } from './harden-server.ts';

let server: Server;
let clients: Socket[];
let accepted: number;

async function listen(max: number): Promise<void> {
  server = createServer((socket) => {
    // Also for the ones that are closed at once.
    socket.on('error', () => undefined).resume();
  });
  limitConnections(server, max);
  // Behind the limit: those that it has closed do not count.
  server.on('connection', (socket) => {
    if (!socket.destroyed) accepted += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
}

async function open(from: string): Promise<Socket> {
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  socket.on('error', () => undefined).resume();
  clients.push(socket);
  await once(socket, 'connect');
  return socket;
}

const isClosed = (socket: Socket) =>
  eventually('the end', () => socket.destroyed || socket.readableEnded);

beforeEach(() => {
  [clients, accepted] = [[], 0];
});

afterEach(async () => {
  for (const socket of clients) socket.destroy();
  server.close();
  await once(server, 'close');
});

test('an address gets as many connections as it may have, and others theirs', async () => {
  await listen(2);
  await open('127.0.0.1');
  const second = await open('127.0.0.1');
  await isClosed(await open('127.0.0.1'));
  const other = await open('127.0.0.2');
  await eventually('three connections', () => accepted === 3);
  expect([second.destroyed, other.destroyed]).toEqual([false, false]);
});

test('a connection that has ended makes room for another one', async () => {
  await listen(1);
  const first = await open('127.0.0.1');
  first.destroy();
  await eventually('room again', async () => {
    await open('127.0.0.1');
    return accepted === 2;
  });
});

import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { StackError } from '../stack-error.ts';
import { settlesWithin } from '../waiting.ts';

export interface NeededPort {
  port: number;
  /** The listener on the port, for the error message. */
  use: string;
  /** The environment variable that sets the port. */
  variable: string;
}

/**
 * Linux gives ports from 32,768 on to outgoing connections, other systems from 49,152 on: such a connection has taken
 * a port before the service that it was meant for could listen on it.
 */
const FIRST_PORT = 15_000;
const PORTS = 17_000;

/**
 * Returns different ports on which nothing listens at the moment, and which no outgoing connection will take. They
 * are reserved until this process ends, so that another process does not get them before their services listen, or
 * while one of these starts again.
 */
export async function freePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const port = FIRST_PORT + randomInt(PORTS);
    if ((await reserve(port)) && (await isFree(port))) found.push(port);
  }
  return found;
}

/**
 * Returns false when a process has reserved the port. The mark is a UDP socket of the same number: the services use
 * TCP only, and the system removes it with its process, however that ends.
 */
async function reserve(port: number): Promise<boolean> {
  const mark = createSocket('udp4').unref();
  const bound = once(mark, 'listening').then(
    () => true,
    () => false,
  );
  mark.bind({ port, address: '127.0.0.1', exclusive: true });
  const isReserved = await bound;
  if (!isReserved) mark.close();
  return isReserved;
}

/** Throws with a list of all ports that are in use or assigned twice. */
export async function requireFreePorts(needed: readonly NeededPort[]): Promise<void> {
  const areFree = await Promise.all(needed.map(({ port }) => isFree(port)));
  const problems = [...portsAssignedTwice(needed), ...needed.filter((_, index) => !areFree[index])];
  if (problems.length > 0) throw new StackError(portsInUseMessage(problems));
}

function portsAssignedTwice(needed: readonly NeededPort[]): NeededPort[] {
  return needed.filter(
    ({ port }, index) => needed.findIndex((other) => other.port === port) < index,
  );
}

export function portsInUseMessage(ports: readonly NeededPort[]): string {
  const lines = ports.map(
    ({ port, use, variable }) =>
      `Port ${port} (${use}) is in use. Free it, or set ${variable} to another port.`,
  );
  return [...new Set(lines)].join('\n');
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listening = once(server, 'listening').then(
    () => true,
    () => false,
  );
  server.listen(port, '127.0.0.1');
  const wasFree = await listening;
  if (wasFree) await once(server.close(), 'close');
  return wasFree;
}

export async function canConnect(host: string, port: number, timeoutMs = 2_000): Promise<boolean> {
  const socket = connect({ host, port });
  const connected = once(socket, 'connect').then(
    () => true,
    () => false,
  );
  const inTime = await settlesWithin(connected, timeoutMs);
  socket.destroy();
  return inTime && (await connected);
}

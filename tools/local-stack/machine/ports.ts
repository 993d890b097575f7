import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { StackError } from '../stack-error.ts';
import { settlesWithin } from '../waiting.ts';

export interface NeededPort {
  port: number;
  /** What listens on the port, for the error message. */
  use: string;
  /** The environment variable that sets the port. */
  variable: string;
}

/** Returns ports on which nothing listens at the moment. All are kept open until the last is known, so they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
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

import type { Server } from 'node:http';
import { StartupError } from './errors.ts';

/** Where a server listens, and the settings that say so. */
export interface Listening {
  host: string;
  port: number;
  settings: { host: string; port: string };
}

/** Resolves when the server listens. Throws StartupError that names the address or port and its setting. */
export function listen(server: Server, at: Listening): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new StartupError(describe(error, at)));
    });
    server.listen(at.port, at.host, resolve);
  });
}

/**
 * Answers clients that close their writing side after a request (RFC 9112, section 9.6). Without it Node closes the
 * connection at once, and a message would be stored whose client does not know it. What is written to a client that
 * has gone closes the connection.
 */
export function answerHalfClosed(server: Server): void {
  // A property of every http.Server, which Node's types leave out.
  Object.assign(server, { httpAllowHalfOpen: true });
}

function describe(error: NodeJS.ErrnoException, { host, port, settings }: Listening): string {
  const code = error.code ?? error.message;
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is taken by another process. Free it, or set ${settings.port} to another port.`;
    case 'EACCES':
      return `Port ${port} on ${host} is not allowed to this user. Set ${settings.port} to a port from 1024 on.`;
    default:
      return `Cannot listen on ${host}: ${code}. Set ${settings.host} to an address of this machine, such as 127.0.0.1, 0.0.0.0 or ::.`;
  }
}

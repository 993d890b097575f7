import type { Server } from 'node:http';
import { StartupError } from './errors.ts';

/** Resolves when the server listens. Throws StartupError that names the port and its setting. */
export function listen(
  server: Server,
  { host, port, setting }: { host: string; port: number; setting: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new StartupError(describe(error, host, port, setting)));
    });
    server.listen(port, host, resolve);
  });
}

function describe(error: NodeJS.ErrnoException, host: string, port: number, setting: string) {
  const why =
    error.code === 'EADDRINUSE'
      ? 'is taken by another process'
      : `failed: ${error.code ?? error.message}`;
  return `Port ${port} on ${host} ${why}. Free it, or set ${setting} to another port.`;
}

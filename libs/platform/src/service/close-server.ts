import type { Server } from 'node:http';

const IDLE_CHECK_MS = 50;

/** Takes no new connection, lets requests under way finish for up to `drainMs`, then cuts the rest. */
export function closeServer(server: Server, drainMs: number): Promise<void> {
  return new Promise((resolve) => {
    // A keep-alive connection becomes idle only after its last answer.
    const idle = setInterval(() => {
      server.closeIdleConnections();
    }, IDLE_CHECK_MS);
    const cut = setTimeout(() => {
      server.closeAllConnections();
    }, drainMs);
    server.close(() => {
      clearInterval(idle);
      clearTimeout(cut);
      resolve();
    });
  });
}

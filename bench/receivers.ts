import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Receivers {
  urls: string[];
  /** Message id → when it first arrived, by `performance.now`. */
  arrivedAtMs: Map<string, number>;
  close: () => void;
}

/** Endpoints that answer 200 at once, each on a port of its own. */
export async function startReceivers(count: number): Promise<Receivers> {
  const arrivedAtMs = new Map<string, number>();
  const servers = Array.from({ length: count }, () =>
    createServer((request, response) => {
      const id = String(request.headers['webhook-id']);
      if (!arrivedAtMs.has(id)) arrivedAtMs.set(id, performance.now());
      request.resume().on('end', () => response.end('ok'));
    }),
  );
  await Promise.all(
    servers.map((server) => new Promise<void>((done) => server.listen(0, '127.0.0.1', done))),
  );
  return {
    arrivedAtMs,
    urls: servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
    close: () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

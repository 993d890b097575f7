import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An endpoint that refuses each message some times and records when its requests came. */
export interface RefusingEndpoint {
  url: string;
  /** Message id → when its requests came, in milliseconds since 1970. */
  arrivalsMs: ReadonlyMap<string, readonly number[]>;
  close: () => Promise<void>;
}

/** Responds with 404 to the first requests of a message, `Infinity` for all; a 404 leaves its circuit closed. */
export async function startRefusingEndpoint(refusals: number): Promise<RefusingEndpoint> {
  const arrivalsMs = new Map<string, number[]>();
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const messageId = String(request.headers['webhook-id']);
      const arrivals = arrivalsMs.get(messageId) ?? [];
      arrivalsMs.set(messageId, arrivals);
      arrivals.push(Date.now());
      response.writeHead(arrivals.length > refusals ? 200 : 404).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    arrivalsMs,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

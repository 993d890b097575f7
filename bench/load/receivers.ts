import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Arrivals } from './arrivals.ts';

/** How an endpoint behaves: 200 at once, 500 at once, or nothing before the dispatcher has given up. */
export type Behaviour = 'answers' | 'fails' | 'hangs';

export interface ReceiverOptions {
  endpoints: number;
  /** Fewer ports than endpoints: the endpoints of one port differ by their paths. */
  ports: number;
  behaviourOf: (endpoint: number) => Behaviour;
  arrivals: Arrivals;
}

export interface Receivers {
  /** The address of each endpoint, by its number. */
  urls: string[];
  close: () => void;
}

/** As long as the dispatcher waits for an answer by default. */
const HANG_MS = 15_000;

export async function startReceivers(options: ReceiverOptions): Promise<Receivers> {
  const { endpoints, ports } = options;
  const servers = Array.from({ length: ports }, () => serverOf(options));
  await Promise.all(
    servers.map((server) => new Promise<void>((done) => server.listen(0, '127.0.0.1', done))),
  );
  const portNumbers = servers.map((server) => (server.address() as AddressInfo).port);
  return {
    urls: Array.from(
      { length: endpoints },
      (_, endpoint) => `http://127.0.0.1:${portNumbers[endpoint % ports] ?? 0}/${endpoint}`,
    ),
    close: () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

function serverOf({ behaviourOf, arrivals }: ReceiverOptions): Server {
  // Longer than a pause between two phases: a connection closed under a request would count as a failure of Posthorn.
  return createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
    const endpoint = Number(request.url?.slice(1));
    arrivals.note(String(request.headers['webhook-id']), endpoint);
    request.resume().on('end', () => {
      answer(response, behaviourOf(endpoint));
    });
  });
}

function answer(response: ServerResponse, behaviour: Behaviour): void {
  switch (behaviour) {
    case 'answers':
      response.end('ok');
      return;
    case 'fails':
      response.writeHead(500).end('not now');
      return;
    case 'hangs':
      setTimeout(() => response.end('late'), HANG_MS).unref();
  }
}

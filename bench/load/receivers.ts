import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { answerRequests, writeAnswer } from './answer-requests.ts';
import type { Arrivals } from './arrivals.ts';

/**
 * How an endpoint responds: 200 at once, 500 at once, nothing until the dispatcher has given up, or 200
 * later.
 */
export type Behaviour = 'answers' | 'fails' | 'hangs' | { answersAfterMs: number };

export interface ReceiverOptions {
  endpoints: number;
  /** May be fewer than endpoints: the endpoints of one port differ by path. */
  ports: number;
  behaviourOf: (endpoint: number) => Behaviour;
  note: Arrivals['note'];
}

export interface Receivers {
  /** The URL of each endpoint, by its number. */
  urls: string[];
  close: () => void;
}

/** As long as the dispatcher waits for a response by default. */
const HANG_MS = 15_000;

export async function startReceivers(options: ReceiverOptions): Promise<Receivers> {
  const { endpoints, ports } = options;
  const sockets = new Set<Socket>();
  const servers = Array.from({ length: ports }, () => serverOf(options, sockets));
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
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function serverOf({ behaviourOf, note }: ReceiverOptions, sockets: Set<Socket>): Server {
  return createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    answerRequests(socket, ({ path, messageId }) => {
      const endpoint = Number(path.slice(1));
      note(messageId, endpoint);
      answer(socket, behaviourOf(endpoint));
    });
  });
}

function answer(socket: Socket, behaviour: Behaviour): void {
  if (typeof behaviour === 'object') {
    answerAfter(socket, behaviour.answersAfterMs);
    return;
  }
  switch (behaviour) {
    case 'answers':
      writeAnswer(socket, '200 OK');
      return;
    case 'fails':
      writeAnswer(socket, '500 Internal Server Error');
      return;
    case 'hangs':
      answerAfter(socket, HANG_MS);
  }
}

function answerAfter(socket: Socket, delayMs: number): void {
  setTimeout(() => {
    writeAnswer(socket, '200 OK');
  }, delayMs).unref();
}

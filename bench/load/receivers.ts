import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Arrivals } from './arrivals.ts';

/**
 * How an endpoint responds: 200 at once, 500 at once, no response before the dispatcher's deadline, or 200
 * later.
 */
export type Behaviour = 'answers' | 'fails' | 'hangs' | { answersAfterMs: number };

interface ReceiverOptions {
  endpoints: number;
  /** May be fewer than endpoints: the endpoints of one server differ by path. */
  servers: number;
  /** Where each server listens; by default on a free port of 127.0.0.1. */
  listenOn?: (server: number) => ListenAddress;
  behaviourOf: (endpoint: number) => Behaviour;
  note: Arrivals['note'];
}

/** An address of the loopback interface. */
interface ListenAddress {
  host: string;
  /** 0 for a free one. */
  port: number;
}

interface Receivers {
  /** The URL of each endpoint, by its number. */
  urls: string[];
  close: () => void;
}

/** As long as the dispatcher waits for a response by default. */
const HANG_MS = 15_000;

export async function startReceivers(options: ReceiverOptions): Promise<Receivers> {
  const { endpoints, listenOn = () => ({ host: '127.0.0.1', port: 0 }) } = options;
  const sockets = new Set<Socket>();
  const servers = Array.from({ length: options.servers }, () => serverOf(options, sockets));
  await Promise.all(
    servers.map(async (server, n) => {
      server.listen(listenOn(n));
      await once(server, 'listening');
    }),
  );
  const origins = servers.map((server) => {
    const { address, port } = server.address() as AddressInfo;
    return `http://${address}:${port}`;
  });
  return {
    urls: Array.from(
      { length: endpoints },
      (_, endpoint) => `${origins[endpoint % origins.length] ?? ''}/${endpoint}`,
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

/** The parts of a request that a receiver reads. */
export interface ReceivedRequest {
  path: string;
  messageId: string;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const PATH = /^POST (\S+) /;
const MESSAGE_ID = /\r\nwebhook-id: *(\S+)/i;
const BODY_BYTES = /\r\ncontent-length: *(\d+)/i;

/**
 * Reads the requests of one keep-alive connection, and calls `onRequest` when the body of one is complete.
 * node:http took 45 µs of CPU per request, which the measured services lacked.
 */
export function answerRequests(socket: Socket, onRequest: (seen: ReceivedRequest) => void): void {
  let rest: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true);
  // The dispatcher may close a connection at any time.
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      const headEnd = rest.indexOf(HEAD_END);
      if (headEnd < 0) return;
      const head = rest.toString('latin1', 0, headEnd);
      const end = headEnd + HEAD_END.length + Number(BODY_BYTES.exec(head)?.[1] ?? 0);
      if (rest.length < end) return;
      rest = rest.subarray(end);
      onRequest({ path: PATH.exec(head)?.[1] ?? '', messageId: MESSAGE_ID.exec(head)?.[1] ?? '' });
    }
  });
}

function writeAnswer(socket: Socket, status: '200 OK' | '500 Internal Server Error'): void {
  if (socket.writable) socket.write(`HTTP/1.1 ${status}\r\ncontent-length: 2\r\n\r\nok`);
}

import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { Arrivals } from './arrivals.ts';

/** How an endpoint responds: 200 at once, 500 at once, or 200 later. */
export type Behaviour = 'answers' | 'fails' | { answersAfterMs: number };

/** As long as the dispatcher waits for a response by default. */
export const HANGS = { answersAfterMs: 15_000 };

interface ReceiverOptions {
  endpoints: number;
  /** May be fewer than endpoints: the endpoints of one server differ by path. */
  servers: number;
  /** Where each server listens; by default on a free port of 127.0.0.1. */
  listenOn?: (server: number) => ListenAddress;
  /** Over TLS: the key and the certificate of a local address. */
  contextOf?: (address: string) => SecureContext;
  behaviourOf: (endpoint: number) => Behaviour;
  note: Arrivals['note'];
}

/** What all servers have seen so far. */
export interface ReceiverCounts {
  requests: number;
  connections: number;
  /** TLS handshakes, by whether they resumed a session. */
  full: number;
  resumed: number;
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
  counts: () => ReceiverCounts;
  close: () => void;
}

export async function startReceivers(options: ReceiverOptions): Promise<Receivers> {
  const { endpoints, listenOn = () => ({ host: '127.0.0.1', port: 0 }) } = options;
  const sockets = new Set<Socket>();
  const counts = { requests: 0, connections: 0, full: 0, resumed: 0 };
  const servers = Array.from({ length: options.servers }, () => serverOf(options, sockets, counts));
  await Promise.all(
    servers.map(async (server, n) => {
      server.listen(listenOn(n));
      await once(server, 'listening');
    }),
  );
  const scheme = options.contextOf ? 'https' : 'http';
  const urlOf = (endpoint: number): string => {
    const server = requiredAt(servers, endpoint % servers.length, 'server');
    const { address, port } = server.address() as AddressInfo;
    return `${scheme}://${address}:${port}/${endpoint}`;
  };
  return {
    urls: Array.from({ length: endpoints }, (_, endpoint) => urlOf(endpoint)),
    counts: () => ({ ...counts }),
    close: () => {
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function serverOf(
  { behaviourOf, note, contextOf }: ReceiverOptions,
  sockets: Set<Socket>,
  counts: ReceiverCounts,
): Server {
  return createServer((accepted) => {
    sockets.add(accepted);
    accepted.on('close', () => sockets.delete(accepted));
    counts.connections += 1;
    const socket = contextOf ? encrypted(accepted, contextOf, counts) : accepted;
    answerRequests(socket, ({ path, messageId }) => {
      counts.requests += 1;
      const endpoint = Number(path.slice(1));
      note(messageId, endpoint);
      answer(socket, behaviourOf(endpoint));
    });
  });
}

function encrypted(
  accepted: Socket,
  contextOf: (address: string) => SecureContext,
  counts: ReceiverCounts,
): Socket {
  accepted.on('error', () => undefined);
  const secureContext = contextOf(accepted.localAddress ?? '');
  const socket = new TLSSocket(accepted, { isServer: true, secureContext });
  socket.on('secure', () => {
    counts[socket.isSessionReused() ? 'resumed' : 'full'] += 1;
  });
  return socket;
}

function answer(socket: Socket, behaviour: Behaviour): void {
  if (typeof behaviour !== 'object') writeAnswer(socket, STATUS[behaviour]);
  else setTimeout(writeAnswer, behaviour.answersAfterMs, socket, STATUS.answers).unref();
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

const STATUS = { answers: '200 OK', fails: '500 Internal Server Error' };

function writeAnswer(socket: Socket, status: string): void {
  if (socket.writable) socket.write(`HTTP/1.1 ${status}\r\ncontent-length: 2\r\n\r\nok`);
}

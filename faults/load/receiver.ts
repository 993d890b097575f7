import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hash } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { type Arrival, deliveryKey } from '../audit/evidence.ts';
import type { Book } from './book.ts';
import type { Breakage, Plan, Reply } from './plan.ts';

/** The endpoints of one round: the book records each request, and the plan decides the response. */
interface Round {
  run: string;
  plan: () => Pick<Plan, 'replyTo'>;
  book: Pick<Book, 'noteArrival' | 'noteAnswered'>;
  /** The secret of each endpoint, by number. */
  secrets: readonly string[];
}

export interface Receiver {
  /** The URL of an endpoint of a run. */
  urlOf: (run: string, endpoint: number) => string;
  open: (round: Round) => void;
  /** Returns how many requests of closed rounds have come since the last call. */
  takeLate: () => number;
  /** Requests of this run that come from now on are late. */
  closeRound: (run: string) => void;
  /** The most requests that an endpoint of the open round had at once. */
  peakOf: (endpoint: number) => number;
  close: () => Promise<void>;
}

interface State {
  rounds: Map<string, OpenRound>;
  late: number;
}

interface OpenRound extends Round {
  signers: readonly Webhook[];
  /** Requests of each delivery so far. */
  nth: Map<string, number>;
  openAt: number[];
  peakAt: number[];
  isClosed: boolean;
}

/** Starts one server for all endpoints; the path is `/run/endpoint`. */
export async function startReceiver(): Promise<Receiver> {
  const state: State = { rounds: new Map(), late: 0 };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    // A dispatcher that is killed ends its requests halfway.
    request.on('error', () => undefined);
    request.on('end', () => {
      receive(state, { request, response, body: Buffer.concat(chunks) });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: (run, endpoint) => `http://127.0.0.1:${port}/${run}/${endpoint}`,
    open: (round) => {
      const signers = round.secrets.map((secret) => new Webhook(secret));
      const none = round.secrets.map(() => 0);
      const counts = { nth: new Map<string, number>(), openAt: none, peakAt: [...none] };
      state.rounds.set(round.run, { ...round, ...counts, signers, isClosed: false });
    },
    takeLate: () => {
      const { late } = state;
      state.late = 0;
      return late;
    },
    closeRound: (run) => {
      const round = state.rounds.get(run);
      if (round) round.isClosed = true;
    },
    peakOf: (endpoint) =>
      Math.max(
        0,
        ...[...state.rounds.values()]
          .filter((each) => !each.isClosed)
          .map((each) => each.peakAt[endpoint] ?? 0),
      ),
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  body: Buffer;
}

function receive(state: State, exchange: Exchange): void {
  const [, run = '', path = ''] = (exchange.request.url ?? '').split('/');
  const round = state.rounds.get(run);
  if (!round || round.isClosed) {
    state.late += 1;
    exchange.response.writeHead(200).end();
    return;
  }
  const endpoint = Number(path);
  const arrival = arrivalOf(round, endpoint, exchange);
  const key = deliveryKey(arrival.messageId, endpoint);
  const nth = (round.nth.get(key) ?? 0) + 1;
  round.nth.set(key, nth);
  round.book.noteArrival(arrival);
  enter(round, endpoint);
  const reply = round.plan().replyTo(arrival.n ?? 0, endpoint, nth);
  answer(exchange.response, reply, () => {
    leave(round, endpoint);
    arrival.answeredAtMs = Date.now();
    arrival.status = reply.kind === 'status' ? reply.status : 0;
    round.book.noteAnswered(arrival);
  });
}

function arrivalOf(
  { run, signers }: OpenRound,
  endpoint: number,
  { request, body }: Exchange,
): Arrival {
  const { headers } = request;
  const read = readPayload(body.toString());
  const messageId = String(headers['webhook-id']);
  return {
    messageId,
    n: read?.run === run ? read.n : null,
    endpoint,
    atMs: Date.now(),
    answeredAtMs: Infinity,
    status: 0,
    isSigned: isSigned(signers[endpoint], request, body),
    isIntact: read !== null && isIntact(body, run, read.n),
  };
}

/** Signs again and compares: the package's own check refuses old timestamps, and a round may set the sender's clock. */
function isSigned(
  signer: Webhook | undefined,
  { headers }: IncomingMessage,
  body: Buffer,
): boolean {
  const sentAt = new Date(Number(headers['webhook-timestamp']) * 1_000);
  if (!signer || Number.isNaN(sentAt.getTime())) return false;
  const signature = signer.sign(String(headers['webhook-id']), sentAt, body);
  return String(headers['webhook-signature']).split(' ').includes(signature);
}

function enter({ openAt, peakAt }: OpenRound, endpoint: number): void {
  const open = (openAt[endpoint] ?? 0) + 1;
  openAt[endpoint] = open;
  peakAt[endpoint] = Math.max(peakAt[endpoint] ?? 0, open);
}

function leave({ openAt }: OpenRound, endpoint: number): void {
  openAt[endpoint] = (openAt[endpoint] ?? 1) - 1;
}

/** Calls `onAnswered` just before the response is written. */
function answer(response: ServerResponse, reply: Reply, onAnswered: () => void): void {
  switch (reply.kind) {
    case 'status': {
      const write = (): void => {
        onAnswered();
        response.writeHead(reply.status).end('ok');
      };
      if (reply.afterMs === 0) write();
      else setTimeout(write, reply.afterMs);
      return;
    }
    case 'broken':
      onAnswered();
      breakOff(response, reply.how);
  }
}

function breakOff({ socket }: ServerResponse, how: Breakage): void {
  switch (how) {
    case 'reset':
      socket?.resetAndDestroy();
      return;
    case 'closed':
      socket?.end();
      return;
    case 'no http':
      socket?.end('hello\r\n\r\n');
      return;
    case 'half a header':
      socket?.end('HTTP/1.1 200 OK\r\nconte');
  }
}

const PAYLOAD_BYTES = 512;
const NUMBER = /^\{"run":"([^"]*)","n":(\d+),/;

/**
 * The payload of message `n`, as text: derived, so that a receiver can check each byte without a list. The numbers are
 * such that parsing and writing them again would change them.
 */
export function payloadOf(run: string, n: number): string {
  const start = `{"run":"${run}","n":${n},"big":1${String(n).padStart(20, '0')},"one":1.0,"text":"ü`;
  return `${start}${'x'.repeat(Math.max(0, PAYLOAD_BYTES - start.length - 2))}"}`;
}

/** Returns the run and number of a body; null when it has none. */
export function readPayload(body: string): { run: string; n: number } | null {
  const [, run, n] = NUMBER.exec(body) ?? [];
  return run === undefined ? null : { run, n: Number(n) };
}

export function isIntact(body: Buffer, run: string, n: number): boolean {
  return hash('sha256', body) === hash('sha256', payloadOf(run, n));
}

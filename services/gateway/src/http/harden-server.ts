import { randomUUID } from 'node:crypto';
import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Duplex } from 'node:stream';

export interface ServerBounds {
  /** From the connection, or the first byte of the next request, to the end of its headers. */
  headersTimeoutMs: number;
  /** From the same moment to the end of the body. */
  requestTimeoutMs: number;
  /** How often these two are looked at. */
  checkEveryMs: number;
  /** How long a client may go on sending after it was refused. */
  lingerMs: number;
}

/** Headers are there within 10 s and bodies within 30 s, the time until they are looked at included. */
const BOUNDS: ServerBounds = {
  headersTimeoutMs: 9_000,
  requestTimeoutMs: 29_000,
  checkEveryMs: 1_000,
  lingerMs: 2_000,
};
const MAX_HEADER_BYTES = 16_384;
/** Longer than the 60 s after which load balancers let go, so that they never meet a closed connection. */
const KEEP_ALIVE_MS = 65_000;
/** An idle connection costs some 10 kB here and a file descriptor. */
const MAX_CONNECTIONS = 10_000;

/** An HTTP server that no client can occupy, and whose every refusal has the error envelope. */
export function createHardenedServer(app: RequestListener, bounds = BOUNDS): Server {
  const server = createServer({
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.checkEveryMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Node would refuse without an envelope.
    requireHostHeader: false,
  });
  server.maxConnections = MAX_CONNECTIONS;
  const answers = new WeakMap<Duplex, ServerResponse>();
  const serve: RequestListener = (request, response) => {
    answers.set(request.socket, response);
    response.once('finish', () => {
      if (!request.complete) closeSoon(request.socket, bounds.lingerMs, () => request.complete);
    });
    if (hasHost(request)) app(request, response);
    else refuse(response, REFUSALS.malformed);
  };
  server.on('request', serve);
  // Who asks with `Expect: 100-continue` hears it from the reader of the body, after all checks.
  server.on('checkContinue', serve);
  server.on('checkExpectation', (_request, response) => {
    refuse(response, REFUSALS.expectation);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (socket.writableEnded) return;
    if (!socket.writable || isAnswered(answers.get(socket))) socket.destroy();
    else {
      socket.end(refusalText(reasonOf(error)));
      closeSoon(socket, bounds.lingerMs);
    }
  });
  return server;
}

/** RFC 9112, 3.2; HTTP/1.0 knows no Host. */
function hasHost({ httpVersion, headers }: IncomingMessage): boolean {
  return httpVersion === '1.0' || headers.host !== undefined;
}

/** What is wrong belongs to a request that has its answer: a second one would garble the first. */
function isAnswered(answer: ServerResponse | undefined): boolean {
  if (!answer?.headersSent) return false;
  return !answer.writableFinished || !answer.req.complete;
}

/** Closing at once would reset the connection, and the client might never read why it was refused. */
function closeSoon(socket: Duplex, lingerMs: number, isWellAgain = () => false): void {
  setTimeout(() => {
    if (!isWellAgain()) socket.destroy();
  }, lingerMs).unref();
}

interface Refusal {
  status: number;
  code: string;
  message: string;
}

const REFUSALS = {
  malformed: {
    status: 400,
    code: 'malformed_request',
    message: 'This is not a valid HTTP request.',
  },
  timeout: {
    status: 408,
    code: 'request_timeout',
    message: 'The request did not arrive in time.',
  },
  expectation: {
    status: 417,
    code: 'expectation_failed',
    message: 'Expect can only be 100-continue.',
  },
  headers: {
    status: 431,
    code: 'headers_too_large',
    message: `The headers are larger than ${MAX_HEADER_BYTES} bytes.`,
  },
} as const satisfies Record<string, Refusal>;

function reasonOf({ code }: NodeJS.ErrnoException): Refusal {
  if (code === 'HPE_HEADER_OVERFLOW') return REFUSALS.headers;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return REFUSALS.timeout;
  return REFUSALS.malformed;
}

function contentOf({ code, message }: Refusal): { headers: Record<string, string>; body: string } {
  const requestId = randomUUID();
  const body = JSON.stringify({ success: false, message, code, requestId });
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': requestId,
  };
  return { headers, body };
}

function refuse(response: ServerResponse, refusal: Refusal): void {
  const { headers, body } = contentOf(refusal);
  response.writeHead(refusal.status, headers).end(body);
}

/** Written by hand: there is no request yet that a response could belong to. */
function refusalText(refusal: Refusal): string {
  const { headers, body } = contentOf(refusal);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const status = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}`;
  return [status, ...lines, 'Connection: close', '', body].join('\r\n');
}

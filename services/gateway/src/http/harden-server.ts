import { createByteCollector } from '@posthorn/platform/memory/byte-collector.ts';
import { answerHalfClosed, closeServer, listen } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { randomUUID } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { ERROR_CODES, type ErrorCode } from '../error-codes.ts';
import type { GatewayConfig } from '../config.ts';
import { addressKey } from '../limits/client-address.ts';

export interface ServerBounds {
  /** From the connection, or the first byte of a further request, to the end of its headers. */
  headersTimeoutMs: number;
  /** From the same moment to the end of the body. */
  requestTimeoutMs: number;
  /** How often the two timeouts are checked. */
  checkEveryMs: number;
  /** How long a refused client may keep sending before its connection is closed. */
  lingerMs: number;
  /** How long a connection with a request or an unread response may be silent in both directions. */
  silenceMs: number;
}

/**
 * Headers must arrive within 10 s and bodies within 30 s. The values are 1 s less: that is the longest time until the
 * next check.
 */
const BOUNDS: ServerBounds = {
  headersTimeoutMs: 9_000,
  requestTimeoutMs: 29_000,
  checkEveryMs: 1_000,
  lingerMs: 2_000,
  // Longer than a request takes. A client that does not read its response would hold it in memory for ever.
  silenceMs: 60_000,
};
const MAX_HEADER_BYTES = 16_384;
/**
 * A half-sent head of 2,000 headers held 80 KiB, and one of a few long headers 27. Apache has the same limit by default.
 */
const MAX_HEADERS = 100;
/**
 * Longer than the 60 s after which load balancers close idle connections, so that they never use one that is closed
 * here.
 */
const KEEP_ALIVE_MS = 65_000;
/** An idle connection costs about 10 kB and a file descriptor. */
const MAX_CONNECTIONS = 10_000;

export interface HttpListener {
  /** Takes requests and responses of `classes`. */
  listener: RequestListener;
  classes: Required<Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'>>;
}

/** Creates an HTTP server with bounds on slow and oversized requests. Every refusal has the error envelope. */
export function createHardenedServer(
  app: RequestListener,
  bounds = BOUNDS,
  classes: Partial<HttpListener['classes']> = {},
): Server {
  const server = createServer({ ...optionsOf(bounds), ...classes });
  boundConnections(server, bounds);
  const responses = createResponses();
  const serve: RequestListener = (request, response) => {
    responses.begin(request.socket, response);
    response.once('finish', () => {
      if (!request.complete) closeSoon(request.socket, bounds.lingerMs, () => request.complete);
      // An idle connection would hold its last request, 10 kB, until the next one.
      else responses.end(request.socket, response);
    });
    const hasTooMany = request.rawHeaders.length > 2 * MAX_HEADERS;
    const fault = hasTooMany ? 'too_many_headers' : checkHead(request);
    if (fault === null) {
      // Only these come in chunks of the client's choice; a body with a length comes as it is read.
      if (request.headers['transfer-encoding'] !== undefined) keepUnreadTogether(request);
      app(request, response);
      return;
    }
    // For a proxy in front, the bytes after a body with a coding may be a part of the body.
    if (request.headers['transfer-encoding'] !== undefined) response.shouldKeepAlive = false;
    refuse(response, REFUSALS[fault]);
  };
  server.on('request', serve);
  // `Expect: 100-continue` is answered by the reader of the body, after all checks.
  server.on('checkContinue', serve);
  server.on('checkExpectation', (_request, response) => {
    refuse(response, REFUSALS.expectation);
  });
  // Without a listener, Node closes the connection without a response.
  server.on('connect', (_request, socket) => {
    socket.on('error', () => undefined);
    responses.refuse(socket, REFUSALS.connect, bounds);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    responses.refuse(socket, reasonOf(error), bounds);
  });
  return server;
}

/** The responses of connections, in the order of their requests. */
interface Responses {
  begin: (socket: Duplex, response: ServerResponse) => void;
  /** Forgets a response that was sent. */
  end: (socket: Duplex, response: ServerResponse) => void;
  /**
   * Ends the connection because of what it has received last, with a response where that has none yet. Both come behind
   * the responses to the requests before: the client would take the refusal for the response to the first of these, which
   * is carried out all the same.
   */
  refuse: (socket: Duplex, refusal: Refusal, bounds: Pick<ServerBounds, 'lingerMs'>) => void;
}

function createResponses(): Responses {
  const latest = new WeakMap<Duplex, ServerResponse>();
  /** The response before each that was pending when its request came: several may be pipelined. */
  const before = new WeakMap<ServerResponse, ServerResponse>();
  const refused = new WeakSet<Duplex>();

  function end(
    socket: Duplex,
    own: ServerResponse | undefined,
    refusal: Refusal,
    lingerMs: number,
  ) {
    if (socket.writableEnded) return;
    // A second response would corrupt the first.
    if (!socket.writable || own?.headersSent) socket.destroy();
    else {
      socket.end(refusalText(refusal));
      closeSoon(socket, lingerMs);
    }
  }
  return {
    begin(socket, response) {
      const earlier = latest.get(socket);
      if (earlier && !earlier.writableFinished) {
        before.set(response, earlier);
        // A client whose next request always comes before the response would have all of them kept.
        earlier.once('close', () => before.delete(response));
      }
      latest.set(socket, response);
    },
    end(socket, response) {
      if (latest.get(socket) === response) latest.delete(socket);
    },
    refuse(socket, refusal, { lingerMs }) {
      // Each further read of a connection that waits is an error again.
      if (refused.has(socket)) return;
      refused.add(socket);
      const last = latest.get(socket);
      // The error is in the last request, or behind it.
      const own = last?.req.complete ? undefined : last;
      const ahead = own ? before.get(own) : last;
      const refuse = (): void => {
        end(socket, own, refusal, lingerMs);
      };
      if (!ahead || ahead.writableFinished) refuse();
      else ahead.once('finish', refuse);
    },
  };
}

function optionsOf(bounds: ServerBounds): ServerOptions {
  return {
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.checkEveryMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    // `checkHead` checks it: Node's own refusal has no envelope.
    requireHostHeader: false,
  };
}

function boundConnections(server: Server, { silenceMs }: ServerBounds): void {
  server.maxConnections = MAX_CONNECTIONS;
  // Node drops further headers silently; the one header more shows that there were too many.
  server.maxHeadersCount = MAX_HEADERS + 1;
  server.setTimeout(silenceMs);
  answerHalfClosed(server);
}

/**
 * Of one peer address (IPv6: one /64), a proxy in front included, of the 10,000 connections of a gateway. Behind a load
 * balancer all clients are one peer; 2,000 remain for others.
 */
const CONNECTIONS_PER_ADDRESS = 8_000;

/** Serves the API from now on. A stop answers the requests that are under way. */
export async function openPort(
  { config, logger, lifecycle }: ServiceContext<GatewayConfig>,
  { listener, classes }: HttpListener,
): Promise<void> {
  const { HOST: host, PORT: port, DRAIN_TIMEOUT_MS: drainMs } = config;
  const server = createHardenedServer(listener, BOUNDS, classes);
  limitConnections(server, CONNECTIONS_PER_ADDRESS);
  await listen(server, { host, port, settings: { host: 'HOST', port: 'PORT' } });
  lifecycle.onStop('http', () => closeServer(server, drainMs));
  logger.info({ host, port }, 'listening');
}

/**
 * Closes connections of an address (IPv6: of a /64) that has `max` already, so that one client cannot
 * take all of them. No limit when `max` is 0.
 */
export function limitConnections(server: NetServer, max: number): void {
  if (max === 0) return;
  const open = new Map<string, number>();
  server.on('connection', (socket) => {
    const key = addressKey(socket.remoteAddress);
    const count = open.get(key) ?? 0;
    if (count >= max) {
      socket.destroy();
      return;
    }
    open.set(key, count + 1);
    socket.once('close', () => {
      const left = (open.get(key) ?? 1) - 1;
      if (left === 0) open.delete(key);
      else open.set(key, left);
    });
  });
}

/**
 * Closes the connection later, unless `isComplete` returns true by then. Closing it at once would reset it, and
 * the client might never read why it was refused.
 */
function closeSoon(socket: Duplex, lingerMs: number, isComplete = () => false): void {
  setTimeout(() => {
    if (!isComplete()) socket.destroy();
  }, lingerMs).unref();
}

/**
 * Responses may hold secrets, so nobody may keep them (RFC 9111, 5.2.2.5), and a browser must not guess
 * that JSON is something else.
 */
export const SECURITY_HEADERS = [
  ['Cache-Control', 'no-store'],
  ['X-Content-Type-Options', 'nosniff'],
] as const;

interface Refusal {
  code: ErrorCode;
  /** In place of the one that belongs to the code. */
  message?: string;
}

const REFUSALS = {
  malformed: { code: 'malformed_request' },
  timeout: { code: 'request_timeout' },
  expectation: { code: 'expectation_failed' },
  unknown_coding: { code: 'not_implemented' },
  connect: {
    code: 'not_implemented',
    message: 'The method CONNECT is not supported: this is no proxy.',
  },
  headers: { code: 'headers_too_large' },
  too_many_headers: {
    code: 'headers_too_large',
    message: `There are more than ${MAX_HEADERS} headers.`,
  },
} as const satisfies Record<string, Refusal>;

function reasonOf({ code }: NodeJS.ErrnoException): Refusal {
  if (code === 'HPE_HEADER_OVERFLOW') return REFUSALS.headers;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return REFUSALS.timeout;
  return REFUSALS.malformed;
}

function contentOf({ code, message = ERROR_CODES[code].message }: Refusal): {
  headers: Record<string, string>;
  body: string;
} {
  const requestId = randomUUID();
  const body = JSON.stringify({ success: false, message, code, requestId });
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': requestId,
    ...Object.fromEntries(SECURITY_HEADERS),
  };
  return { headers, body };
}

function refuse(response: ServerResponse, refusal: Refusal): void {
  const { headers, body } = contentOf(refusal);
  response.writeHead(ERROR_CODES[refusal.code].status, headers).end(body);
}

/** Returns a response as text. There is no request yet for which Node could create one. */
function refusalText(refusal: Refusal): string {
  const { headers, body } = contentOf(refusal);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const { status } = ERROR_CODES[refusal.code];
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...lines,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

/** The fault in the head of a request; `unknown_coding` is a transfer coding other than `chunked`. */
type HeadFault = 'malformed' | 'unknown_coding';

/**
 * Checks what Node's parser accepts and RFC 9112 refuses. Afterwards `Host` is the authority of the target and `url`
 * its path and query, also for a target in absolute form (section 3.2.2), so nothing reads an unchecked host. Returns
 * null when the head is good.
 */
export function checkHead(request: IncomingMessage): HeadFault | null {
  return faultOfCoding(request) ?? (hasOneHost(request) && useTarget(request) ? null : 'malformed');
}

/**
 * Section 6.1. A proxy in front that ignores a coding, or knows one that is ignored here, would find another end of
 * the request than this gateway, and the rest would be somebody else's next request.
 */
function faultOfCoding({ httpVersion, headers }: IncomingMessage): HeadFault | null {
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return null;
  if (httpVersion === '1.0') return 'malformed';
  return coding.trim().toLowerCase() === 'chunked' ? null : 'unknown_coding';
}

/** Section 3.2. HTTP/1.0 may leave it out. */
function hasOneHost({ httpVersion, headers, rawHeaders }: IncomingMessage): boolean {
  if (headers.host === undefined) return httpVersion === '1.0';
  return countOfHosts(rawHeaders) === 1 && isAuthority(headers.host);
}

/** Node keeps the first of several. `rawHeaders` has names and values in turn. */
function countOfHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** RFC 3986, section 3.2, without a user. */
const HOST_AND_PORT = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(?::\d*)?$/i;

/** An authority must also fit into an http URL: `a%2fb` and `a:99999` are none. */
function isAuthority(text: string): boolean {
  return HOST_AND_PORT.test(text) && URL.canParse(`http://${text}`);
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

function useTarget(request: IncomingMessage): boolean {
  const { url = '', method } = request;
  if (url.startsWith('/')) return true;
  if (url === '*') return method === 'OPTIONS';
  const [, authority = '', rest = ''] = ABSOLUTE.exec(url) ?? [];
  if (!isAuthority(authority)) return false;
  request.headers.host = authority;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  return true;
}

/** Node stops reading a body here until a handler reads it; one read of 64 KiB may come on top. */
const MAX_UNREAD_BYTES = 16_384;

/**
 * Keeps the arriving body in one buffer until a handler reads it, which happens after the API key was found. Node's own
 * buffer counts bytes and not chunks: 64 KiB in chunks of one byte are 35 MB of resident memory, for a request without a
 * valid key too.
 */
export function keepUnreadTogether(request: IncomingMessage): void {
  const push = request.push.bind(request);
  const read = request._read.bind(request);
  const kept = createByteCollector({ maxBytes: Infinity });
  let isKept = true;
  const release = (): void => {
    if (!isKept) return;
    isKept = false;
    Object.assign(request, { push, _read: read });
    if (kept.receivedBytes() > 0) push(kept.bytes());
  };
  request.push = (chunk: Buffer | null) => {
    if (chunk === null) {
      release();
      return push(null);
    }
    kept.add(chunk);
    return kept.receivedBytes() < MAX_UNREAD_BYTES;
  };
  request._read = (size) => {
    release();
    read(size);
  };
}

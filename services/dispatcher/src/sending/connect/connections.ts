import type { EndpointTls } from '@posthorn/domain/webhook.ts';
import { createClosingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { trustingOnly } from '@posthorn/platform/service/secure-context.ts';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { Client, type Dispatcher } from 'undici';
import type { IdentifiedTls } from '../../webhooks.ts';
import { createGuardedConnect, type GuardedConnect, type GuardOptions } from './guarded-connect.ts';
import { isIdleReset, isUnansweredReuse, MAX_HEAD_BYTES, noteContent } from './response-heads.ts';

const KEEP_ALIVE_MS = 30_000;
/** A connection is closed after this time, however busy, so that a host that has moved is looked up again. */
const CONNECTION_LIFE_MS = 300_000;
/** undici's own timeouts end later than the deadline sweep. They are for sockets that nobody reads any more. */
const BACKSTOP_MS = 5_000;

/** Sends requests to every origin. */
export interface Agent {
  dispatch: (request: Dispatcher.DispatchOptions, handler: RequestHandler) => boolean;
}

export interface RequestHandler extends Dispatcher.DispatchHandler {
  /**
   * Called each time the request begins to wait for its connection. Until `onRequestStart`, only `cancel` ends it: otherwise
   * its body would stay in memory until the connection is open or has failed, which an endpoint may delay for 30 s.
   */
  onWaiting?: (cancel: () => void) => void;
}

export interface Connections {
  /**
   * Returns the client of webhooks without TLS settings of their own, or with these. Webhooks with other settings never
   * share a connection or a TLS session. Throws when OpenSSL refuses the certificates or the key.
   */
  agentOf: (tls: IdentifiedTls | null) => Agent;
  count: () => ConnectionCount;
  /** Bytes of the open connections, estimated. */
  usedBytes: () => number;
  /** Bytes of the certificates and keys that webhooks have of their own. */
  tlsClientBytes: () => number;
  /** Ends all connections with their requests. */
  destroy: () => Promise<void>;
}

export interface ConnectionCount {
  open: number;
  /** The open connections that carry no request. */
  idle: number;
  /** Connections with a request that has not ended, also those that are being opened or closed. */
  held: number;
}

export interface ConnectionsOptions {
  guard: Omit<GuardOptions, 'tls'>;
  /** The bound of open connections, in bytes. */
  maxBytes: number;
  /** The bound of certificates and keys of webhooks, in bytes. */
  tlsClientBytes: number;
  /** Called for each request that is sent. `isReused` is false for the first on its connection. */
  onSent: (isReused: boolean) => void;
  /** Called for each idle connection that is closed because of `maxBytes`. */
  onEvicted: () => void;
  monotonicMs?: () => number;
}

/** A context of OpenSSL with certificates and a key takes 24 to 38 KiB, and its connector the rest. */
const TLS_CLIENT_BYTES = 40_960;
/** The memory of an idle connection, measured: 8 kB of heap, the other outside of it, most of that for OpenSSL. */
const PLAIN_BYTES = 20_480;
const TLS_BYTES = 61_440;

/**
 * The HTTP client of deliveries: HTTP/1.1, connections kept alive, redirects not followed. A request is repeated once,
 * on a new connection, when the endpoint ended the kept one within 2 s and without a byte of an answer: it has most
 * likely closed an idle connection just when the request was sent (docs/contract.md C10.1). On a new connection the
 * same is a failure. A request whose kept connection is reset before anything of it was sent goes on a new one too.
 *
 * Each connection is a client of undici. Its pools take 20 kB for an origin, most of it an empty queue, search their
 * connections one by one (13 % of the dispatcher with 300 of them), and know nothing of other origins. The caller
 * bounds how many requests are under way.
 */
export function createConnections(options: ConnectionsOptions): Connections {
  const { guard, onSent } = options;
  const pool = new Pool(options);
  const agentFor = (settings: string, connect: GuardedConnect): Agent => ({
    dispatch(request, handler) {
      const origin = String(request.origin);
      const route = { origin, connect, key: settings + origin, hasOwnTls: settings !== '' };
      const sendOn = (connection: Connection, repeat: (() => void) | null): void => {
        handler.onWaiting?.(() => {
          pool.close(connection);
        });
        connection.send(request, new Exchange(handler, { connection, onSent, repeat }));
      };
      sendOn(pool.kept(route.key) ?? pool.open(route), () => {
        sendOn(pool.open(route), null);
      });
      return true;
    },
  });
  const byDefault = agentFor('', createGuardedConnect(guard));
  let tlsClients = 0;
  const withTls = createClosingCache<Agent>(
    Math.floor(options.tlsClientBytes / TLS_CLIENT_BYTES),
    () => (tlsClients -= 1),
  );
  const openWithTls = (tls: IdentifiedTls): Agent => {
    const settings = { id: tls.id, secureContext: contextOf(tls) };
    tlsClients += 1;
    return agentFor(`${tls.id} `, createGuardedConnect({ ...guard, tls: settings }));
  };
  return {
    agentOf: (tls) => (tls ? withTls.get(tls.id, () => openWithTls(tls)) : byDefault),
    count: () => pool.count(),
    usedBytes: () => pool.usedBytes(),
    tlsClientBytes: () => tlsClients * TLS_CLIENT_BYTES,
    destroy: () => pool.destroy(),
  };
}

function contextOf({ client, ca }: EndpointTls): SecureContext {
  return createSecureContext({
    ...(client && { cert: client.certificate, key: client.key }),
    ...(ca !== null && trustingOnly(ca)),
  });
}

/** Where a request goes. Requests with the same key may share a connection. */
interface Route {
  key: string;
  origin: string;
  connect: GuardedConnect;
  /** Its connections may be the last to hold their certificates. */
  hasOwnTls: boolean;
}

function bytesOf({ origin, hasOwnTls }: Route): number {
  if (!origin.startsWith('https:')) return PLAIN_BYTES;
  return hasOwnTls ? TLS_BYTES + TLS_CLIENT_BYTES : TLS_BYTES;
}

/** A connection with at most one request. */
class Connection extends Client {
  readonly key: string;
  readonly bytes: number;
  readonly #release: () => void;
  #socket: Socket | null = null;
  isOpen = false;
  /** From when it gets a request to the end of that. */
  isBusy = false;
  /** Requests on the open connection. */
  sent = 0;
  openedAtMs = 0;
  idleSinceMs = 0;

  constructor(route: Route, options: Client.Options, release: (connection: Connection) => void) {
    let onOpening: (socket: Socket) => void = () => undefined;
    const connect: GuardedConnect = (target, callback) => {
      route.connect(target, callback, (socket) => {
        onOpening(socket);
      });
    };
    super(route.origin, { ...options, connect });
    onOpening = (socket) => {
      this.#socket = socket;
      if (this.destroyed) void this.end();
    };
    this.key = route.key;
    this.bytes = bytesOf(route);
    this.#release = () => {
      if (!this.isBusy) release(this);
    };
    // `drain`: it can take the next request.
    this.on('drain', this.#release).on('connectionError', this.#release);
  }

  send(request: Dispatcher.DispatchOptions, exchange: Exchange): void {
    this.isBusy = true;
    this.dispatch(request, exchange);
    // undici refuses a request, or the egress rules a host, at once and without an event.
    this.#release();
  }

  /** Also ends a request that waits for the connection. undici alone would go on opening it. */
  async end(): Promise<void> {
    const ended = this.destroy();
    this.#socket?.destroy(new Error('the connection is not needed any longer'));
    await ended;
  }
}

/** Idle connections leave room for those with a request, so that opening one does not close another. */
const MOST_IDLE = 7 / 8;
/** Endpoints that hang do not cost all others their connections. */
const LEAST_IDLE = 1 / 4;
/** With more origins than connections, which get messages in turn, closing the oldest would keep each for none of them. */
const YOUNG_MS = 10_000;

/**
 * The connections of all origins. When they hold more than `maxBytes`, idle ones are closed: the one that has been idle
 * for longest, or, while all are young, the one whose request has just ended. An origin without connections costs
 * nothing.
 */
class Pool {
  readonly #maxBytes: number;
  readonly #onEvicted: () => void;
  readonly #monotonicMs: () => number;
  readonly #options: Client.Options;
  readonly #all = new Set<Connection>();
  /** In the order in which they became idle. */
  readonly #idle = new Set<Connection>();
  readonly #idleByKey = new Map<string, Connection[]>();
  #open = 0;
  #openBytes = 0;
  #idleBytes = 0;

  constructor(options: ConnectionsOptions) {
    this.#maxBytes = options.maxBytes;
    this.#onEvicted = options.onEvicted;
    this.#monotonicMs = options.monotonicMs ?? monotonicClockMs;
    this.#options = clientOptionsOf(options.guard);
  }

  /** Returns the connection that became idle last: the others may reach the end of their keep-alive. */
  kept(key: string): Connection | undefined {
    for (;;) {
      const connection = this.#idleByKey.get(key)?.at(-1);
      if (!connection) return undefined;
      this.#removeIdle(connection);
      if (this.#monotonicMs() - connection.openedAtMs < CONNECTION_LIFE_MS) return connection;
      this.close(connection);
    }
  }

  /** Returns a new connection, which is opened for its first request. */
  open(route: Route): Connection {
    const connection = new Connection(route, this.#options, (released) => {
      if (released.isOpen) this.#addIdle(released);
      else this.#all.delete(released);
    });
    this.#all.add(connection);
    connection.on('connect', () => {
      this.#onOpen(connection);
    });
    connection.on('disconnect', () => {
      this.#onClosed(connection);
    });
    return connection;
  }

  /** Closes a connection that is idle, or whose request was not sent yet. */
  close(connection: Connection): void {
    void connection.end();
    this.#onClosed(connection);
  }

  count(): ConnectionCount {
    return { open: this.#open, idle: this.#idle.size, held: this.#all.size - this.#idle.size };
  }

  usedBytes(): number {
    return this.#openBytes;
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((connection) => connection.end()));
  }

  #onOpen(connection: Connection): void {
    connection.isOpen = true;
    connection.sent = 0;
    connection.openedAtMs = this.#monotonicMs();
    this.#open += 1;
    this.#openBytes += connection.bytes;
    for (const oldest of this.#idle) {
      if (this.#idleBytes <= this.#roomForIdle(1)) return;
      this.#evict(oldest);
    }
  }

  /** undici opens it again when it has a request that it has not sent. */
  #onClosed(connection: Connection): void {
    this.#removeIdle(connection);
    if (connection.isOpen) {
      connection.isOpen = false;
      this.#open -= 1;
      this.#openBytes -= connection.bytes;
    }
    if (!connection.isBusy) this.#all.delete(connection);
  }

  #addIdle(connection: Connection): void {
    if (this.#idle.has(connection)) return;
    connection.idleSinceMs = this.#monotonicMs();
    this.#idle.add(connection);
    this.#idleBytes += connection.bytes;
    const others = this.#idleByKey.get(connection.key);
    if (others) others.push(connection);
    else this.#idleByKey.set(connection.key, [connection]);
    for (const oldest of this.#idle) {
      if (this.#idleBytes <= this.#roomForIdle(MOST_IDLE)) return;
      const isYoung = connection.idleSinceMs - oldest.idleSinceMs < YOUNG_MS;
      this.#evict(isYoung ? connection : oldest);
      if (isYoung) return;
    }
  }

  #removeIdle(connection: Connection): void {
    if (!this.#idle.delete(connection)) return;
    this.#idleBytes -= connection.bytes;
    const ofKey = this.#idleByKey.get(connection.key) ?? [];
    if (ofKey.length <= 1) this.#idleByKey.delete(connection.key);
    else ofKey.splice(ofKey.lastIndexOf(connection), 1);
  }

  /** At most this share of the memory. */
  #roomForIdle(most: number): number {
    const unused = this.#maxBytes - (this.#openBytes - this.#idleBytes);
    return Math.max(Math.min(unused, this.#maxBytes * most), this.#maxBytes * LEAST_IDLE);
  }

  #evict(connection: Connection): void {
    this.close(connection);
    this.#onEvicted();
  }
}

function clientOptionsOf({ connectTimeoutMs }: Pick<GuardOptions, 'connectTimeoutMs'>) {
  const timeoutMs = connectTimeoutMs + BACKSTOP_MS;
  return {
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // An endpoint's own `keep-alive: timeout=600` does not extend it.
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    // It never gets there: larger heads are not passed to it.
    maxHeaderSize: MAX_HEAD_BYTES,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  };
}

interface ExchangeParts {
  connection: Connection;
  onSent: ConnectionsOptions['onSent'];
  /** Sends the request on a new connection; null for one that is there already. */
  repeat: (() => void) | null;
}

/** One request on a connection, whose events go to `handler`. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #parts: ExchangeParts;
  #isStarted = false;

  constructor(handler: Dispatcher.DispatchHandler, parts: ExchangeParts) {
    this.#handler = handler;
    this.#parts = parts;
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    const { connection, onSent } = this.#parts;
    this.#isStarted = true;
    this.#handler.onRequestStart?.(controller, context);
    if (controller.aborted) return;
    onSent(connection.sent > 0);
    connection.sent += 1;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    this.#handler.onResponseStart?.(controller, statusCode, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    noteContent();
    this.#handler.onResponseData?.(controller, chunk);
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.#parts.connection.isBusy = false;
    this.#handler.onResponseEnd?.(controller, trailers);
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    const { connection, repeat } = this.#parts;
    connection.isBusy = false;
    const isUnsent = !this.#isStarted && isIdleReset(error);
    if (repeat && (isUnsent || isUnansweredReuse(error))) repeat();
    else this.#handler.onResponseError?.(controller, error);
  }
}

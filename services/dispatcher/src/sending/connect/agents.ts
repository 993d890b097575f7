import { requiredAt } from '@posthorn/domain/required.ts';
import type { EndpointTls } from '@posthorn/domain/webhook.ts';
import { createClosingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import { trustingOnly } from '@posthorn/platform/service/secure-context.ts';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { Agent, type DiagnosticsChannel, type Dispatcher } from 'undici';
import type { IdentifiedTls } from '../../webhooks.ts';
import { createGuardedConnect, type GuardOptions } from './guarded-connect.ts';
import { isIdleReset, isUnansweredReuse, MAX_HEAD_BYTES, noteContent } from './response-heads.ts';

/** Many webhooks may share an origin. The caller bounds how many attempts are under way. */
const CONNECTIONS_PER_ORIGIN = 1_024;

const KEEP_ALIVE_MS = 30_000;
/** A connection is closed after this time, however busy, so that a host that has moved is looked up again. */
const CONNECTION_LIFE_MS = 300_000;
/** undici's own timeouts end later than the deadline sweep. They are for sockets that nobody reads any more. */
const BACKSTOP_MS = 5_000;

/** Sends requests to every origin. */
export interface DeliveryAgent extends Pick<Agent, 'dispatch' | 'stats'> {
  /** Resolves once all requests have ended. */
  close: () => Promise<void>;
  destroy: () => Promise<void>;
}

/**
 * The HTTP client of deliveries: HTTP/1.1, connections kept alive, redirects not followed. A request is repeated once,
 * on a new connection, when the endpoint ended the kept one within 2 s and without a byte of an answer: it has most
 * likely closed an idle connection just when the request was sent (docs/contract.md C10.1). On a new connection the
 * same is a failure. A request whose kept connection is reset before anything of it was sent goes on a new one too.
 */
export function createDeliveryAgent(guard: GuardOptions): DeliveryAgent {
  const options = optionsOf(guard);
  const keeping = new Agent(options);
  // The HTTP client opens a connection for each request, and closes it after the response.
  const opening = new Agent({ ...options, pipelining: 0 });
  return {
    dispatch(request, handler) {
      const noting: Dispatcher.DispatchHandler = {
        ...handler,
        onResponseData(controller, chunk) {
          noteContent();
          handler.onResponseData?.(controller, chunk);
        },
      };
      let isStarted = false;
      return keeping.dispatch(request, {
        ...noting,
        onRequestStart(controller, context) {
          isStarted = true;
          handler.onRequestStart?.(controller, context);
        },
        onResponseError(controller, error) {
          const isUnsent = !isStarted && isIdleReset(error);
          if (isUnsent || isUnansweredReuse(error)) opening.dispatch(request, noting);
          else handler.onResponseError?.(controller, error);
        },
      });
    },
    get stats() {
      return { ...keeping.stats, ...opening.stats };
    },
    async close() {
      await keeping.close();
      await opening.close();
    },
    async destroy() {
      await Promise.all([keeping.destroy(), opening.destroy()]);
    },
  };
}

function optionsOf(guard: GuardOptions): Agent.Options {
  const timeoutMs = guard.connectTimeoutMs + BACKSTOP_MS;
  return {
    connect: createGuardedConnect(guard),
    connections: CONNECTIONS_PER_ORIGIN,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // An endpoint's own `keep-alive: timeout=600` does not extend it.
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    clientTtl: CONNECTION_LIFE_MS,
    // It never gets there: larger heads are not passed to it.
    maxHeaderSize: MAX_HEAD_BYTES,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  };
}

/**
 * An undici pool tries its connections one by one to find a free one: with 300 connections to one
 * origin that took 13 % of the dispatcher's CPU. What shares an origin is spread over this many pools.
 */
const AGENTS = 16;

/** HTTP clients that share the requests to each origin. */
export interface SpreadAgents {
  /** Returns the same client for the same key, whose end must be random. */
  agentOf: (key: string) => DeliveryAgent;
  destroy: () => Promise<void>;
}

export function createSpreadAgents(guard: GuardOptions): SpreadAgents {
  const agents = Array.from({ length: AGENTS }, () => createDeliveryAgent(guard));
  return {
    agentOf: (key) => requiredAt(agents, endOf(key) % AGENTS, 'agent'),
    async destroy() {
      await Promise.all(agents.map((agent) => agent.destroy()));
    },
  };
}

/** Uses the last two characters: the last one alone has only 16 values in the base64 of a hash. */
function endOf(key: string): number {
  return key.charCodeAt(key.length - 1) + key.charCodeAt(key.length - 2);
}

interface TlsClients {
  /** Throws when OpenSSL refuses the certificates or the key. */
  agentOf: (tls: IdentifiedTls) => DeliveryAgent;
  /** Bytes that the clients hold, without their connections; also those that end their requests. */
  usedBytes: () => number;
  destroy: () => Promise<void>;
}

/** A context of OpenSSL with certificates and a key takes 24 to 38 KiB, and the HTTP client the rest. */
const CLIENT_BYTES = 65_536;

/**
 * Webhooks with TLS settings of their own have an HTTP client for each distinct settings, so that no
 * request goes over a connection that was opened with the certificate of another. To open one takes
 * 0.4 ms. The least recently used are closed when those in use hold more than
 * `maxBytes`, after their requests.
 */
export function createTlsClients(guard: GuardOptions, maxBytes: number): TlsClients {
  const open = new Set<DeliveryAgent>();
  const closeAfterRequests = async (agent: DeliveryAgent): Promise<void> => {
    await agent.close();
    open.delete(agent);
  };
  const clients = createClosingCache<DeliveryAgent>(
    Math.floor(maxBytes / CLIENT_BYTES),
    (agent) => {
      void closeAfterRequests(agent);
    },
  );
  const openClient = (tls: EndpointTls): DeliveryAgent => {
    const agent = createDeliveryAgent({ ...guard, secureContext: contextOf(tls) });
    open.add(agent);
    return agent;
  };
  return {
    agentOf: (tls) => clients.get(tls.id, () => openClient(tls)),
    usedBytes: () => open.size * CLIENT_BYTES,
    async destroy() {
      await Promise.all([...open].map((agent) => agent.destroy()));
    },
  };
}

function contextOf({ client, ca }: EndpointTls): SecureContext {
  return createSecureContext({
    ...(client && { cert: client.certificate, key: client.key }),
    ...(ca !== null && trustingOnly(ca)),
  });
}

export interface IdleConnections {
  /** Adds a connection that was just opened. */
  add: (socket: Socket) => void;
  /** Connections that are open, and how many of them carry no request. */
  count: () => { open: number; idle: number };
  stop: () => void;
}

interface IdleOptions {
  /** When more are idle, the one that has been idle for longest is closed. */
  maxIdle: number;
  /** Called for each request that is sent. `isReused` is false for the first on its connection. */
  onSent: (isReused: boolean) => void;
}

const REQUEST_SENT = 'undici:client:sendHeaders';
const RESPONSE_ENDED = 'undici:request:trailers';

/**
 * Bounds the idle connections of all origins together. undici bounds them per origin, and otherwise
 * closes them by time only: 2,000 attempts per second to as many hosts would keep 60,000 open for 30 s.
 * Its diagnostics channels tell which socket carries which request, at about 2 µs per request.
 */
export function createIdleConnections({ maxIdle, onSent }: IdleOptions): IdleConnections {
  const idle = new Set<Socket>();
  let open = 0;
  const sentBySocket = new WeakMap<Socket, number>();
  const socketByRequest = new WeakMap<object, Socket>();

  function markIdle(socket: Socket): void {
    idle.add(socket);
    if (idle.size <= maxIdle) return;
    const [oldest] = idle;
    if (!oldest) return;
    idle.delete(oldest);
    // If undici picks it at this moment, it sends the request on a new connection.
    oldest.destroy();
  }
  function onRequestSent(message: unknown): void {
    const { request, socket } = message as DiagnosticsChannel.ClientSendHeadersMessage;
    const sent = sentBySocket.get(socket);
    if (sent === undefined) return;
    sentBySocket.set(socket, sent + 1);
    socketByRequest.set(request, socket);
    idle.delete(socket);
    onSent(sent > 0);
  }
  function onResponseEnded(message: unknown): void {
    const { request } = message as DiagnosticsChannel.RequestTrailersMessage;
    const socket = socketByRequest.get(request);
    if (socket && !socket.destroyed) markIdle(socket);
  }

  subscribe(REQUEST_SENT, onRequestSent);
  subscribe(RESPONSE_ENDED, onResponseEnded);
  return {
    add(socket) {
      open += 1;
      sentBySocket.set(socket, 0);
      socket.once('close', () => {
        open -= 1;
        idle.delete(socket);
      });
      markIdle(socket);
    },
    count: () => ({ open, idle: idle.size }),
    stop() {
      unsubscribe(REQUEST_SENT, onRequestSent);
      unsubscribe(RESPONSE_ENDED, onResponseEnded);
    },
  };
}

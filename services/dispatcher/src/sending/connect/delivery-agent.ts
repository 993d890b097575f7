import { Agent } from 'undici';
import { createGuardedConnect, type GuardOptions } from './guarded-connect.ts';

/** Many webhooks may share an origin. The caller bounds how many attempts are under way. */
const CONNECTIONS_PER_ORIGIN = 1_024;

const KEEP_ALIVE_MS = 30_000;
/** A connection is closed after this time, however busy, so that a host that has moved is looked up again. */
const CONNECTION_LIFE_MS = 300_000;
/** undici's own timeouts end later than the deadline sweep. They are for sockets that nobody reads any more. */
const BACKSTOP_MS = 5_000;
const MAX_HEADER_BYTES = 16_384;

/** The HTTP client of deliveries: HTTP/1.1, connections kept alive, redirects not followed. */
export function createDeliveryAgent(guard: GuardOptions): Agent {
  const timeoutMs = guard.connectTimeoutMs + BACKSTOP_MS;
  return new Agent({
    connect: createGuardedConnect(guard),
    connections: CONNECTIONS_PER_ORIGIN,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // An endpoint's own `keep-alive: timeout=600` does not extend it.
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    clientTtl: CONNECTION_LIFE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  });
}

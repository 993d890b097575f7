import { Agent } from 'undici';
import { createGuardedConnect, type GuardOptions } from './guarded-connect.ts';

/** Many webhooks may share an origin; how many attempts are under way is bounded by the caller. */
const CONNECTIONS_PER_ORIGIN = 1_024;

const KEEP_ALIVE_MS = 30_000;
/** A busy connection is left for a new look-up by then, so that a host that moves is followed. */
const CONNECTION_LIFE_MS = 300_000;
/** undici's own time-outs stand behind the deadline sweep, for sockets that nobody reads any more. */
const BACKSTOP_MS = 5_000;
const MAX_HEADER_BYTES = 16_384;

/** The one HTTP client of all endpoints: HTTP/1.1, kept alive, no redirect followed. */
export function createDeliveryAgent(guard: GuardOptions): Agent {
  const timeoutMs = guard.connectTimeoutMs + BACKSTOP_MS;
  return new Agent({
    connect: createGuardedConnect(guard),
    connections: CONNECTIONS_PER_ORIGIN,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A receiver's own `keep-alive: timeout=600` does not make it longer.
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    clientTtl: CONNECTION_LIFE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  });
}

import { Agent, type Dispatcher } from 'undici';
import { createGuardedConnect, type GuardOptions } from './guarded-connect.ts';
import { isIdleReset, isUnansweredReuse, noteContent } from './prepare-socket.ts';
import { MAX_HEAD_BYTES } from './response-heads.ts';

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

import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Request, Response } from 'express';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { KnownRoutes } from './known-routes.ts';
import type { MessageTally } from './route.ts';

/** Called when a request begins. */
export type Observe = (request: Request, response: Response) => void;

export interface HttpMetrics {
  /**
   * Returns the function that counts and times every request. `messageErrors` are the codes that a
   * message may be refused with.
   */
  observe: (routes: KnownRoutes, messageErrors: readonly string[]) => Observe;
}

/** Instead of a status code, for a response that was not sent to its end. */
const ABORTED = 'aborted';

/** Counts and times requests by route. */
export function createHttpMetrics(registry: Registry): HttpMetrics {
  const registers = [registry];
  const total = new Counter({
    name: 'posthorn_http_requests_total',
    help: 'Requests of the API, by method, route and status code; `aborted` when the connection was closed before the end of the response, by the client or by the end of a drain.',
    labelNames: ['method', 'route', 'code'],
    registers,
  });
  const seconds = new Histogram({
    name: 'posthorn_http_request_duration_seconds',
    help: 'Time from the start of the request to the end of its response. Requests of unknown routes and methods are not timed.',
    labelNames: ['method', 'route'],
    // Each one more is a series for each of about 100 methods of routes.
    buckets: [0.005, 0.025, 0.1, 0.25, 1, 2.5, 10],
    registers,
  });
  const inFlight = new Gauge({
    name: 'posthorn_http_requests_in_flight',
    help: 'Requests that have no complete response yet.',
    registers,
  });
  const messages = createMessageCounters(registers);
  function count(routes: KnownRoutes, request: Request, response: Response, tookMs: number): void {
    const { method, path } = request;
    const { isKnown, ...shown } = routes.labelsOf(method, path, matchedPath(request));
    const code = response.writableFinished ? String(response.statusCode) : ABORTED;
    total.inc({ ...shown, code });
    if (isKnown) seconds.observe(shown, tookMs / 1_000);
    if (shown.method === 'POST' && MESSAGE_ROUTES.has(shown.route))
      countMessages(messages, response);
  }
  return {
    observe(routes, messageErrors) {
      for (const reason of messageErrors) messages.rejected.inc({ reason }, 0);
      return (request, response) => {
        const startedMs = monotonicClockMs();
        inFlight.inc();
        response.once('close', () => {
          inFlight.dec();
          count(routes, request, response, monotonicClockMs() - startedMs);
        });
      };
    },
  };
}

/** The template of the route, such as `/webhooks/:webhookId`; undefined when there is none. */
export function matchedPath(request: Request): string | undefined {
  return (request.route as { path?: string } | undefined)?.path;
}

interface MessageCounters {
  accepted: Counter;
  rejected: Counter<'reason'>;
}

function createMessageCounters(registers: Registry[]): MessageCounters {
  const accepted = new Counter({
    name: 'posthorn_messages_accepted_total',
    help: 'Messages accepted. Repeats with the same idempotency key are not counted.',
    registers,
  });
  const rejected = new Counter({
    name: 'posthorn_messages_rejected_total',
    help: 'Messages refused, by error code.',
    labelNames: ['reason'],
    registers,
  });
  return { accepted, rejected };
}

/** The routes that take messages, without a version. */
export const MESSAGE_ROUTES: ReadonlySet<string> = new Set([
  '/webhook-messages',
  '/webhook-messages/batch',
]);

/** A batch says how many messages it has once it is read, and what became of them once they are stored. */
function countMessages({ accepted, rejected }: MessageCounters, response: Response): void {
  const { errorCode, messages } = response.locals as CountedLocals;
  if (errorCode !== undefined) rejected.inc({ reason: errorCode }, messages?.count ?? 1);
  else if (messages?.refused) {
    accepted.inc(messages.accepted);
    for (const [reason, count] of messages.refused) rejected.inc({ reason }, count);
  } else if (response.statusCode === 202 && !response.get('Idempotency-Replayed')) accepted.inc();
}

interface CountedLocals {
  errorCode?: string;
  messages?: { count?: number } & Partial<MessageTally>;
}

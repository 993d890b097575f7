import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { RequestHandler, Response } from 'express';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface HttpMetrics {
  observe: RequestHandler;
}

/** Counts and times requests by route pattern. The route of an unknown address is `unknown`. */
export function createHttpMetrics(registry: Registry): HttpMetrics {
  const registers = [registry];
  const total = new Counter({
    name: 'posthorn_http_requests_total',
    help: 'Responses sent, by method, route and status code.',
    labelNames: ['method', 'route', 'code'],
    registers,
  });
  const seconds = new Histogram({
    name: 'posthorn_http_request_duration_seconds',
    help: 'Time from the start of the request to the end of its response, in seconds.',
    labelNames: ['method', 'route'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const inFlight = new Gauge({
    name: 'posthorn_http_requests_in_flight',
    help: 'Requests that have no complete response yet.',
    registers,
  });
  const countMessage = createMessageCount(registers);
  return {
    observe: (request, response, next) => {
      const startedMs = monotonicClockMs();
      inFlight.inc();
      response.once('close', () => {
        const { method } = request;
        const route = (request.route as { path?: string } | undefined)?.path ?? 'unknown';
        inFlight.dec();
        total.inc({ method, route, code: response.statusCode });
        seconds.observe({ method, route }, (monotonicClockMs() - startedMs) / 1_000);
        if (method === 'POST' && route.endsWith('/webhook-messages')) countMessage(response);
      });
      next();
    },
  };
}

/** Counts accepted and refused messages; `reason` is the error code of the response. */
function createMessageCount(registers: Registry[]): (response: Response) => void {
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
  return (response) => {
    const reason = response.locals.errorCode as string | undefined;
    if (reason !== undefined) rejected.inc({ reason });
    else if (response.statusCode === 202 && !response.get('Idempotency-Replayed')) accepted.inc();
  };
}

import type { ClockWatch } from '@posthorn/platform/mongo/days/watch-clock.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import express, { type Express, type RequestHandler, type Router } from 'express';
import { randomUUID } from 'node:crypto';
import { ApiError, unavailable } from './api-error.ts';
import { useClientAddress } from './limits/client-address.ts';
import type { HttpMetrics } from './http/http-metrics.ts';
import {
  createKnownRoutes,
  type KnownPage,
  methodsByPath,
  refuseMethod,
} from './http/known-routes.ts';
import { handlersOf, type PipelineDeps } from './http/pipeline.ts';
import { methodsOf, pathsOf, type Route } from './http/route.ts';
import { SECURITY_HEADERS } from './http/harden-server.ts';
import { sendError } from './http/send-error.ts';
import type { RateLimits } from './limits/rate-limits.ts';
import { DOCS_PATHS, docsPage } from './openapi/docs-page.ts';
import { createDocument } from './openapi/document.ts';
import { codesOf } from './openapi/responses.ts';
import { PUBLIC_KEYS_PATH, type PublicKeysDeps, publicKeysPage } from './routes/signing-keys.ts';

interface AppDeps extends PipelineDeps, Pick<PublicKeysDeps, 'findPublicKeys'> {
  routes: readonly Route[];
  clock: ClockWatch;
  limits: Pick<RateLimits, 'limitAddress' | 'limitCompany'>;
  /** Number of proxies in front whose X-Forwarded-For is trusted for the client's address. */
  trustedProxies: number;
  /** The dashboard and the portal. */
  dashboard: { router: Router; pages: readonly KnownPage[] };
  metrics: HttpMetrics;
  logger: Logger;
}

const PAGES = [...DOCS_PATHS, PUBLIC_KEYS_PATH].map((path): KnownPage => {
  return { path, methods: ['GET'] };
});

/** Builds the HTTP API without listening. */
export function createApp(deps: AppDeps): Express {
  const { routes, clock, limits, trustedProxies, dashboard, metrics, logger } = deps;
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false);
  // For `request.secure`, from X-Forwarded-Proto.
  app.set('trust proxy', trustedProxies);
  useClientAddress(app, trustedProxies);
  app.enable('case sensitive routing').enable('strict routing');
  const known = createKnownRoutes(routes, [...PAGES, ...dashboard.pages]);
  const observe = metrics.observe(known, messageErrorsOf(routes));
  app.use(setSecurityHeaders, assignRequestId, observe, refuseDeliveries);
  app.use(limits.limitAddress, refuseWhileClockIsWrong(clock));
  for (const route of routes) {
    const handlers = handlersOf(route, deps);
    for (const path of pathsOf(route)) {
      for (const method of methodsOf(route)) app[method](path, ...handlers);
    }
  }
  for (const [path, methods] of methodsByPath(routes)) app.all(path, refuseMethod(methods));
  app.use(dashboard.router);
  app.use(publicKeysPage(deps));
  app.use(docsPage(createDocument(routes)));
  app.use((request) => {
    throw new ApiError('route_not_found', `There is no ${request.method} ${request.path}.`);
  });
  app.use(sendError(logger));
  return app;
}

/** Sets them on every response; a page that may be kept sets its own. */
const setSecurityHeaders: RequestHandler = (_request, response, next) => {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
  next();
};

/** A message that is stored with a wrong time may expire at once. */
export function refuseWhileClockIsWrong(clock: ClockWatch): RequestHandler {
  return ({ method }, _response, next) => {
    if (method !== 'GET' && !clock.isRight()) throw unavailable('clock_wrong');
    next();
  };
}

function messageErrorsOf(routes: readonly Route[]): string[] {
  const message = routes.filter(
    ({ method, path }) => method === 'post' && path === '/webhook-messages',
  );
  return message.flatMap((route) => [...codesOf(route).values()].flat());
}

const ACCEPTABLE = /^[A-Za-z0-9._-]{8,128}$/;

/** Uses the `X-Request-Id` of the client if it is acceptable, else a new one, and returns it in the response. */
export const assignRequestId: RequestHandler = (request, response, next) => {
  const given = request.get('x-request-id');
  const requestId = given && ACCEPTABLE.test(given) ? given : randomUUID();
  response.locals.requestId = requestId;
  response.setHeader('X-Request-Id', requestId);
  next();
};

/** Every delivery has this header (docs/contract.md C9.7), and no webhook may set it as a custom header (C6.7). */
const DELIVERY_HEADER = 'webhook-id';

/**
 * Refuses a delivery that is sent to this API. With an API key as a custom header, a webhook could send
 * messages to itself, and each of them several more.
 */
const refuseDeliveries: RequestHandler = (request, _response, next) => {
  if (request.headers[DELIVERY_HEADER] === undefined) {
    next();
    return;
  }
  throw new ApiError('delivery_refused');
};

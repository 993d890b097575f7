import type { ClockWatch } from '@posthorn/platform/mongo/days/watch-clock.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type Response,
  type Router,
} from 'express';
import { randomUUID } from 'node:crypto';
import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { ApiError, unavailable } from './api-error.ts';
import { useClientAddress } from './limits/client-address.ts';
import { type HttpMetrics, MESSAGE_ROUTES } from './http/http-metrics.ts';
import {
  createKnownRoutes,
  type KnownPage,
  methodsByPath,
  refuseMethod,
} from './http/known-routes.ts';
import { type Handler, handlerOf, type PipelineDeps } from './http/pipeline.ts';
import { methodsOf, pathsOf, type Route } from './http/route.ts';
import { type HttpListener, SECURITY_HEADERS } from './http/harden-server.ts';
import { sendError } from './http/send-error.ts';
import type { RateLimits } from './limits/rate-limits.ts';
import { DOCS_PATHS, docsPage } from './openapi/docs-page.ts';
import { createDocument } from './openapi/document.ts';
import { codesOf } from './openapi/responses.ts';
import { PUBLIC_KEYS_PATH, type PublicKeysDeps, publicKeysPage } from './routes/signing-keys.ts';

interface AppDeps extends PipelineDeps, Pick<PublicKeysDeps, 'findPublicKeys'> {
  routes: readonly Route[];
  clock: ClockWatch;
  limits: Pick<RateLimits, 'limitAddress' | 'limitCompany' | 'countMore'>;
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

/**
 * Builds the HTTP API without listening. Addresses without an id, such as that of messages, are found in a map; Express,
 * which tries the patterns of all routes one after another, gets the others.
 */
export function createApp(deps: AppDeps): App {
  const { routes, clock, limits, metrics, dashboard, logger } = deps;
  const known = createKnownRoutes(routes, [...PAGES, ...dashboard.pages]);
  const observe = metrics.observe(known, messageErrorsOf(routes));
  const begin = (request: Request, response: Response): void => {
    setSecurityHeaders(response);
    assignRequestId(request, response);
    observe(request, response);
    refuseDelivery(request);
    limits.limitAddress(request, response);
    refuseWhileClockIsWrong(clock, request);
  };
  const mounted = routes.map((route) => ({ route, handle: handlerOf(route, deps) }));
  const direct = directRoutes(mounted);
  const fail = sendError(logger);
  const express = createExpress(mounted, fail, deps);
  const listener = (request: Request, response: Response): void => {
    const failed = (error: unknown): void => {
      try {
        void fail(error, request, response, () => undefined);
      } catch (unexpected) {
        // Nothing of one request ends the process.
        logger.error({ err: unexpected }, 'cannot respond with an error');
        response.destroy();
      }
    };
    // The properties that Express adds to the requests that it gets.
    Object.assign(request, { res: response, params: {} });
    response.locals = {};
    try {
      begin(request, response);
    } catch (error) {
      failed(error);
      return;
    }
    const found = direct.get(`${request.method} ${request.url}`);
    if (found) {
      request.route = found.route;
      found.handle(request, response).catch(failed);
    } else {
      express(request, response);
    }
  };
  return { express, listener: listener as RequestListener, classes: classesOf(express) };
}

export interface App extends HttpListener {
  express: Express;
}

/**
 * Returns classes whose instances have the methods of Express from the start. Express would change the prototype of each
 * request and response, after which their fields are read more slowly: 4 % of the CPU time of the HTTP part.
 */
function classesOf({ request, response }: Express): App['classes'] {
  return {
    IncomingMessage: withPrototype(IncomingMessage, request),
    ServerResponse: withPrototype(ServerResponse, response),
  };
}

function withPrototype<Class extends typeof IncomingMessage | typeof ServerResponse>(
  base: Class,
  prototype: object,
): Class {
  function Instance(...args: unknown[]): object {
    return Reflect.construct(base, args, Instance) as object;
  }
  Instance.prototype = prototype;
  // A function that is called with `new` has no type of a class.
  return Instance as unknown as Class;
}

interface MountedRoute {
  route: Route;
  handle: Handler;
}

/** Returns the routes whose address has no id, by method and address. */
function directRoutes(
  mounted: readonly MountedRoute[],
): ReadonlyMap<string, { route: { path: string }; handle: Handler }> {
  const entries = mounted.flatMap(({ route, handle }) =>
    pathsOf(route)
      .filter((path) => !path.includes(':'))
      .flatMap((path) =>
        methodsOf(route).map(
          (method) => [`${method.toUpperCase()} ${path}`, { route: { path }, handle }] as const,
        ),
      ),
  );
  return new Map(entries);
}

function createExpress(
  mounted: readonly MountedRoute[],
  fail: ErrorRequestHandler,
  deps: AppDeps,
): Express {
  const { routes, trustedProxies, dashboard } = deps;
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false);
  // For `request.secure`, from X-Forwarded-Proto.
  app.set('trust proxy', trustedProxies);
  useClientAddress(app, trustedProxies);
  app.enable('case sensitive routing').enable('strict routing');
  // `/webhook-messages/batch` is no id of a message, whatever the method is.
  for (const hasId of [false, true]) {
    for (const { route, handle } of mounted) {
      for (const path of pathsOf(route).filter((each) => each.includes(':') === hasId)) {
        for (const method of methodsOf(route)) app[method](path, handle);
      }
    }
    for (const [path, methods] of methodsByPath(routes)) {
      if (path.includes(':') === hasId) app.all(path, refuseMethod(methods));
    }
  }
  app.use(dashboard.router);
  app.use(publicKeysPage(deps));
  app.use(docsPage(createDocument(routes)));
  app.use((request) => {
    throw new ApiError('route_not_found', `There is no ${request.method} ${request.path}.`);
  });
  app.use(fail);
  return app;
}

/** Sets them on every response; a page that may be kept sets its own. */
function setSecurityHeaders(response: Response): void {
  for (const [name, value] of SECURITY_HEADERS) response.setHeader(name, value);
}

/** A message that is stored with a wrong time may expire at once. */
export function refuseWhileClockIsWrong(
  clock: ClockWatch,
  { method }: Pick<Request, 'method'>,
): void {
  if (method !== 'GET' && !clock.isRight()) throw unavailable('clock_wrong');
}

function messageErrorsOf(routes: readonly Route[]): string[] {
  const message = routes.filter(
    ({ method, path }) => method === 'post' && MESSAGE_ROUTES.has(path),
  );
  return [...new Set(message.flatMap((route) => [...codesOf(route).values()].flat()))];
}

const ACCEPTABLE = /^[A-Za-z0-9._-]{8,128}$/;

/** Uses the `X-Request-Id` of the client if it is acceptable, else a new one, and returns it in the response. */
export function assignRequestId(
  { headers }: Pick<Request, 'headers'>,
  response: Pick<Response, 'locals' | 'setHeader'>,
): void {
  const given = headers['x-request-id'];
  const requestId = typeof given === 'string' && ACCEPTABLE.test(given) ? given : randomUUID();
  response.locals.requestId = requestId;
  response.setHeader('X-Request-Id', requestId);
}

/** Every delivery has this header (docs/contract.md C9.7), and no webhook may set it as a custom header (C6.7). */
const DELIVERY_HEADER = 'webhook-id';

/**
 * Refuses a delivery that is sent to this API. With an API key as a custom header, a webhook could send
 * messages to itself, and each of them several more.
 */
function refuseDelivery({ headers }: Pick<Request, 'headers'>): void {
  if (headers[DELIVERY_HEADER] !== undefined) throw new ApiError('delivery_refused');
}

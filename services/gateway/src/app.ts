import type { Logger } from '@posthorn/platform/service/logger.ts';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import type { Authenticate } from './api-keys/authenticate.ts';
import { answerError } from './http/answer-error.ts';
import { ApiError } from './http/api-error.ts';
import type { HttpMetrics } from './http/http-metrics.ts';
import { readBody, readRawFields, type Body } from './http/read-body.ts';
import { checkHead } from './http/read-head.ts';
import { createReceiveBody } from './http/receive-body.ts';
import { giveRequestId } from './http/request-id.ts';
import type { RequestMemory } from './http/request-memory.ts';
import { createDocument } from './api/openapi/document.ts';
import { docsPage } from './api/openapi/docs-page.ts';
import type { RateLimits } from './limits/rate-limits.ts';
import { NO_FIELDS, pathsOf, type ApiAnswer, type Caller, type Route } from './http/route.ts';

export interface AppDeps {
  routes: readonly Route[];
  authenticate: Authenticate;
  limits: Pick<RateLimits, 'limitAddress' | 'limitCompany'>;
  /** How many proxies in front are believed about the client's address. */
  trustedProxies: number;
  metrics: HttpMetrics;
  memory: Pick<RequestMemory, 'tryHold' | 'hold'>;
  logger: Logger;
}

/** Builds the API; listens nowhere. */
export function createApp(deps: AppDeps): Express {
  const { routes, limits, trustedProxies, metrics, logger } = deps;
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false);
  app.set('trust proxy', trustedProxies);
  app.enable('case sensitive routing').enable('strict routing');
  app.use(giveRequestId, metrics.observe, limits.limitAddress);
  for (const route of routes) {
    for (const path of pathsOf(route)) app[route.method](path, ...stepsOf(route, deps));
  }
  app.use(docsPage(createDocument(routes)));
  app.use((request) => {
    throw new ApiError(404, 'route_not_found', `There is no ${request.method} ${request.path}.`);
  });
  app.use(answerError(logger));
  return app;
}

/** The key is checked before a byte of the body is read. */
function stepsOf(route: Route, { authenticate, limits, memory }: AppDeps): RequestHandler[] {
  const identify: RequestHandler = async (request, response, next) => {
    response.locals.caller = await authenticate({
      apiKey: request.get('x-api-key'),
      companyId: request.get('companyid'),
      address: request.ip,
    });
    next();
  };
  const requireBody: RequestHandler = (request, _response, next) => {
    if (!route.isBodyOptional || hasBody(request)) assertJson(request);
    next();
  };
  const answer: RequestHandler = async (request, response) => {
    sendAnswer(response, route, await callRoute(route, request, response));
    // What the client has not taken yet; mostly nothing.
    memory.hold(response, response.writableLength);
  };
  const known = [identify, limits.limitCompany];
  return route.body
    ? [...known, requireBody, createReceiveBody(memory), answer]
    : [...known, answer];
}

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\s*(;|$)/i;

function assertJson(request: Request): void {
  if (!JSON_TYPE.test(request.get('content-type') ?? '')) {
    throw new ApiError(415, 'unsupported_media_type', 'Send Content-Type: application/json.');
  }
}

/** RFC 9112, 6: a request has a body when one of the two says so. */
function hasBody(request: Request): boolean {
  const length = request.get('content-length');
  return request.get('transfer-encoding') !== undefined || (length ?? '0') !== '0';
}

async function callRoute(route: Route, request: Request, response: Response): Promise<ApiAnswer> {
  const header = (name: string): string | undefined => request.get(name);
  const head = checkHead({ queryText: queryOf(request.url), header }, route);
  const caller = response.locals.caller as Caller;
  const params = request.params as Record<string, string>;
  const bytes = bytesOf(route, request);
  const schema = route.body ?? NO_FIELDS;
  const stored = route.problemsOf
    ? await route.problemsOf({ caller, params, fields: readRawFields(bytes, schema) })
    : [];
  const body = readBody(bytes, schema, [...head.problems, ...stored]);
  return route.handle({
    caller,
    params,
    header,
    query: head.query as never,
    body: body as Body<never>,
    requestId: String(response.locals.requestId),
  });
}

/** Up to the end: a second question mark belongs to a value. */
function queryOf(url: string): string {
  const mark = url.indexOf('?');
  return mark === -1 ? '' : url.slice(mark + 1);
}

const EMPTY_OBJECT = Buffer.from('{}');

function bytesOf(route: Route, request: Request): Buffer {
  if (!route.body || (route.isBodyOptional && !hasBody(request))) return EMPTY_OBJECT;
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

function sendAnswer(response: Response, { answer }: Route, sent: ApiAnswer): void {
  const { status, message } = answer;
  const { data, nextCursor, headers = {} } = sent;
  response
    .status(status)
    .set(headers)
    .json({
      success: true,
      message,
      ...(data !== undefined && { data }),
      ...(nextCursor !== undefined && { nextCursor }),
    });
}

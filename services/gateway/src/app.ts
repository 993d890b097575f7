import { MAX_BODY_BYTES } from '@posthorn/domain/message.ts';
import type { Logger } from '@posthorn/platform/logger.ts';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import type { Authenticate } from './authenticate.ts';
import { answerError } from './http/answer-error.ts';
import { ApiError } from './http/api-error.ts';
import type { HttpMetrics } from './http/http-metrics.ts';
import { readBody } from './http/read-body.ts';
import { giveRequestId } from './http/request-id.ts';
import { pathsOf, type ApiAnswer, type Route } from './http/route.ts';

export interface AppDeps {
  routes: readonly Route[];
  authenticate: Authenticate;
  metrics: HttpMetrics;
  logger: Logger;
}

/** Builds the API; listens nowhere. */
export function createApp({ routes, authenticate, metrics, logger }: AppDeps): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', 'simple');
  app.use(giveRequestId, metrics.observe);
  for (const route of routes) {
    for (const path of pathsOf(route)) app[route.method](path, ...stepsOf(route, authenticate));
  }
  app.use((request) => {
    throw new ApiError(404, 'route_not_found', `There is no ${request.method} ${request.path}.`);
  });
  app.use(answerError(logger));
  return app;
}

/** The key is checked before a byte of the body is read. */
function stepsOf(route: Route, authenticate: Authenticate): RequestHandler[] {
  const identify: RequestHandler = async (request, response, next) => {
    response.locals.caller = await authenticate({
      apiKey: request.get('x-api-key'),
      companyId: request.get('companyid'),
    });
    next();
  };
  const answer: RequestHandler = async (request, response) => {
    sendAnswer(response, await callRoute(route, request, response));
  };
  return 'body' in route ? [identify, requireJson, readBytes, answer] : [identify, answer];
}

const readBytes = express.raw({ type: () => true, limit: MAX_BODY_BYTES, inflate: false });

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\s*(;|$)/i;

const requireJson: RequestHandler = (request, _response, next) => {
  if (!JSON_TYPE.test(request.get('content-type') ?? '')) {
    throw new ApiError(415, 'unsupported_media_type', 'Send Content-Type: application/json.');
  }
  next();
};

function callRoute(route: Route, request: Request, response: Response): Promise<ApiAnswer> {
  refuseQuery(request);
  const common = {
    caller: response.locals.caller as { companyId: string },
    requestId: String(response.locals.requestId),
    params: request.params as Record<string, string>,
  };
  if (!('body' in route)) return route.handle(common);
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  return route.handle({ ...common, body: readBody(bytes, route.body) as never });
}

/** No route has query parameters yet; a typo must not pass for a filter. */
function refuseQuery(request: Request): void {
  const problems = Object.keys(request.query).map((name) => ({
    path: name,
    message: 'is not a query parameter of this address',
  }));
  if (problems.length > 0) {
    throw new ApiError(400, 'invalid_request', 'Unknown query parameters.', { problems });
  }
}

function sendAnswer(response: Response, { status, message, data }: ApiAnswer): void {
  response.status(status).json({ success: true, message, ...(data !== undefined && { data }) });
}

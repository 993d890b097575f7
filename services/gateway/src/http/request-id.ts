import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';

const ACCEPTABLE = /^[A-Za-z0-9._-]{8,128}$/;

/** Uses the `X-Request-Id` of the client if it is acceptable, else a new one, and returns it in the response. */
export const assignRequestId: RequestHandler = (request, response, next) => {
  const given = request.get('x-request-id');
  const requestId = given && ACCEPTABLE.test(given) ? given : randomUUID();
  response.locals.requestId = requestId;
  response.setHeader('X-Request-Id', requestId);
  next();
};

import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';

const ACCEPTABLE = /^[A-Za-z0-9._-]{8,128}$/;

/** Takes the caller's `X-Request-Id` when it is harmless, makes one otherwise, and echoes it. */
export const giveRequestId: RequestHandler = (request, response, next) => {
  const given = request.get('x-request-id');
  const requestId = given && ACCEPTABLE.test(given) ? given : randomUUID();
  response.locals.requestId = requestId;
  response.setHeader('X-Request-Id', requestId);
  next();
};

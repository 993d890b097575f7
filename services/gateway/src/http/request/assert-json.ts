import type { Request, RequestHandler } from 'express';
import { ApiError } from '../api-error.ts';

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\s*(;|$)/i;

/** Throws ApiError 415. A form of another site cannot send this type. */
export const assertJson: RequestHandler = (request, _response, next) => {
  if (!isJson(request)) {
    throw new ApiError(415, 'unsupported_media_type', 'Send Content-Type: application/json.');
  }
  next();
};

function isJson(request: Request): boolean {
  return JSON_TYPE.test(request.get('content-type') ?? '');
}

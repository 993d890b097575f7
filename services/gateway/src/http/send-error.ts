import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { asStoreError } from '@posthorn/platform/mongo/connection/connect.ts';
import type { ErrorRequestHandler } from 'express';
import { ApiError, unavailable } from './api-error.ts';

/** Sends whatever a handler threw as an error envelope, without stack traces or driver messages. */
export function sendError(logger: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    const requestId = String(response.locals.requestId);
    const apiError = toApiError(error);
    if (apiError.status >= 500) {
      report(logger, error, { requestId, method: request.method, code: apiError.code });
    }
    if (response.headersSent) {
      // The client must not take what it has got for the whole response.
      response.destroy();
      next();
      return;
    }
    response.locals.errorCode = apiError.code;
    response
      .status(apiError.status)
      .set(apiError.headers)
      .json({
        success: false,
        message: apiError.message,
        code: apiError.code,
        requestId,
        ...(apiError.problems.length > 0 && { errors: apiError.problems }),
      });
  };
}

/** Logs an ApiError without a stack trace and anything else with one. */
function report(logger: Logger, error: unknown, context: object): void {
  if (error instanceof ApiError) logger.warn(context, 'request refused');
  else logger.error({ err: error, ...context }, 'request failed');
}

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (asStoreError(error) instanceof StoreUnavailableError) return unavailable();
  if (error instanceof URIError) {
    return new ApiError(404, 'route_not_found', 'The path is not valid percent-encoding.');
  }
  return new ApiError(500, 'internal_error', 'An internal error occurred.');
}

import { StoreUnavailableError } from '@posthorn/platform/errors.ts';
import type { Logger } from '@posthorn/platform/logger.ts';
import { asStoreError } from '@posthorn/platform/mongo/connect.ts';
import type { ErrorRequestHandler } from 'express';
import { ApiError, unavailable } from './api-error.ts';

/** Turns whatever a handler threw into the error envelope. No stack or driver text ever leaves. */
export function answerError(logger: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    const requestId = String(response.locals.requestId);
    const apiError = toApiError(error);
    if (apiError.status >= 500) {
      logger.error({ err: error, requestId, method: request.method }, 'request failed');
    }
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

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (asStoreError(error) instanceof StoreUnavailableError) return unavailable();
  if (error instanceof URIError) {
    return new ApiError(404, 'route_not_found', 'The address is not valid percent-encoding.');
  }
  return fromBodyReader(error) ?? new ApiError(500, 'internal_error', 'Something went wrong here.');
}

/** Errors of the body reader carry a `type`; its limits and encodings are the client's to mend. */
function fromBodyReader(error: unknown): ApiError | null {
  if (!(error instanceof Error) || !('type' in error)) return null;
  switch (error.type) {
    case 'entity.too.large':
      return new ApiError(413, 'body_too_large', 'The body is larger than 262144 bytes.');
    case 'encoding.unsupported':
      return new ApiError(415, 'unsupported_media_type', 'Send the body without compression.');
    case 'request.aborted':
    case 'request.size.invalid':
      return new ApiError(400, 'incomplete_body', 'The body ended before its announced length.');
    default:
      return null;
  }
}

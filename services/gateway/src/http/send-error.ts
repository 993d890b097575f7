import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { ErrorRequestHandler, Response } from 'express';
import { ApiError, toApiError } from '../api-error.ts';
import { matchedPath } from './http-metrics.ts';
import type { Caller } from '../keys/rights.ts';

/**
 * RFC 9110, section 15.5.2: every 401 has a challenge, here one for each way to send the key (section 11.6.1); some clients
 * throw without one. No scheme is `Basic`, for which a browser would show a dialog of its own over the dashboard.
 */
export const CHALLENGE = 'ApiKey realm="posthorn", header="x-api-key", Bearer realm="posthorn"';

const runAfter = (ms: number, run: () => void): void => void setTimeout(run, ms);

/** Sends the error of a handler in an envelope, without stack traces or driver messages. */
export function sendError(
  logger: Logger,
  delayRefusal: DelayRefusal = createDelayRefusal(runAfter),
): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    const requestId = String(response.locals.requestId);
    // A path that is not valid percent-encoding.
    const apiError =
      error instanceof URIError ? new ApiError('route_not_found') : toApiError(error);
    if (apiError.status >= 500) {
      report(logger, error, {
        requestId,
        method: request.method,
        route: matchedPath(request),
        companyId: companyOf(response),
        code: apiError.code,
        reason: apiError.reason ?? undefined,
      });
    }
    if (response.headersSent) {
      // The client must not mistake the part that it has received for the whole response.
      response.destroy();
      next();
      return;
    }
    response.locals.errorCode = apiError.code;
    const send = (): void => {
      sendEnvelope(response, apiError, requestId);
    };
    if (apiError.isDelayed) delayRefusal(send);
    else send();
  };
}

function sendEnvelope(response: Response, error: ApiError, requestId: string): void {
  if (error.status === 401) response.set('WWW-Authenticate', CHALLENGE);
  response
    .status(error.status)
    .set(error.headers)
    .json({
      success: false,
      message: error.message,
      code: error.code,
      requestId,
      ...(error.problems.length > 0 && { errors: error.problems }),
    });
}

/** Undefined until the key of the request is known. */
function companyOf(response: Response): string | undefined {
  return (response.locals as { caller?: Caller }).caller?.companyId;
}

/** Logs an ApiError without a stack trace and anything else with one. */
function report(logger: Logger, error: unknown, context: object): void {
  if (error instanceof ApiError) logger.warn(context, 'request refused');
  else logger.error({ err: error, ...context }, 'request failed');
}

/** Calls `send` later, so that clients which repeat a refused request at once cost little. */
type DelayRefusal = (send: () => void) => void;

/** A client that ignores `Retry-After` repeats its request four times a second, instead of hundreds of times. */
const DELAY_MS = 250;
/** Refusals beyond these are sent at once: each delayed one keeps a connection and some kilobytes. */
const MAX_DELAYED = 2_000;

/** `after` calls the function once, after this many milliseconds: setTimeout. */
export function createDelayRefusal(after: (ms: number, run: () => void) => void): DelayRefusal {
  let delayed = 0;
  return (send) => {
    if (delayed >= MAX_DELAYED) {
      send();
      return;
    }
    delayed += 1;
    after(DELAY_MS, () => {
      delayed -= 1;
      send();
    });
  };
}

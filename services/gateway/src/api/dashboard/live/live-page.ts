import { Router, type Request, type RequestHandler, type Response } from 'express';
import { assertAllowed } from '../../../api-keys/assert-allowed.ts';
import { ApiError } from '../../../http/api-error.ts';
import { refuseMethod } from '../../../http/refuse-method.ts';
import type { RequestDeadlines } from '../../../http/connections/request-deadlines.ts';
import { REQUEST_BYTES, type RequestMemory } from '../../../http/request/request-memory.ts';
import type { Caller } from '../../../http/request/route.ts';
import type { RateLimits } from '../../../limits/rate-limits.ts';
import type { Identify } from '../sessions/identify.ts';
import type { LiveStreams, Stream } from './live-streams.ts';

export interface LivePageDeps {
  identify: Identify;
  limits: Pick<RateLimits, 'limitCompany'>;
  streams: Pick<LiveStreams, 'open' | 'close'>;
  unknownCallers: Pick<RequestMemory, 'countWhile'>;
  deadlines: Pick<RequestDeadlines, 'within'>;
}

export const LIVE_PATH = '/api/v1/live';

const NEEDED = { scope: 'read', portal: 'view' } as const;
/** A stream whose client is this far behind is ended. */
const MAX_UNREAD_BYTES = 65_536;

/** Streams attempts as they end (docs/contract.md C21.5). */
export function livePage(deps: LivePageDeps): Router {
  const { identify, limits, streams, unknownCallers, deadlines } = deps;
  const router = Router({ caseSensitive: true, strict: true });
  const admit: RequestHandler = async (request, response, next) => {
    const identifying = unknownCallers.countWhile(response, REQUEST_BYTES, () => identify(request));
    const caller = await deadlines.within(response, identifying);
    assertAllowed(NEEDED, caller);
    response.locals.caller = caller;
    next();
  };
  router.get(LIVE_PATH, admit, limits.limitCompany, (request: Request, response: Response) => {
    if (request.method === 'HEAD') {
      response.type('text/event-stream').end();
      return;
    }
    const stream = streamTo(request, response, identify);
    if (!streams.open(stream)) throw tooMany();
    // A response goes on when its client closes its sending side. A browser has gone then, and its place is needed.
    const { socket } = request;
    socket.once('end', stream.end);
    response.once('close', () => {
      socket.off('end', stream.end);
      streams.close(stream);
    });
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      // Without this, nginx buffers the response.
      'X-Accel-Buffering': 'no',
    });
    // A comment: the client sees at once that the stream is open.
    response.write(': open\n\n');
  });
  router.all(LIVE_PATH, refuseMethod(['GET']));
  return router;
}

function streamTo(request: Request, response: Response, identify: Identify): Stream {
  const { companyId, appId, portal } = response.locals.caller as Caller;
  return {
    companyId,
    appId,
    linkId: portal?.linkId ?? null,
    write(text) {
      response.write(text);
      return response.writableLength <= MAX_UNREAD_BYTES;
    },
    isAllowed: () => stillAllowed(request, identify),
    end: () => response.end(),
  };
}

/** False once the key is revoked or the session has ended. An outage does not end a stream. */
async function stillAllowed(request: Request, identify: Identify): Promise<boolean> {
  try {
    assertAllowed(NEEDED, await identify(request));
    return true;
  } catch (error) {
    return !(error instanceof ApiError) || error.status >= 500;
  }
}

const tooMany = (): ApiError =>
  new ApiError(503, 'unavailable', 'Too many live streams are open. Poll the lists instead.', {
    headers: { 'Retry-After': '15' },
  });

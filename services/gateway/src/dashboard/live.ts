import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { LiveNews } from '@posthorn/platform/redis/live-attempts.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { GatewayConfig } from '../config.ts';
import { ApiError } from '../api-error.ts';
import { refuseMethod } from '../http/known-routes.ts';
import type { RequestDeadlines } from '../http/request-deadlines.ts';
import { REQUEST_BYTES, type RequestMemory } from '../http/request-memory.ts';
import type { Caller } from '../keys/rights.ts';
import { assertAllowed } from '../keys/rights.ts';
import type { RateLimits } from '../limits/rate-limits.ts';
import type { GatewayRedis } from '../start.ts';
import type { Identify } from '../http/pipeline.ts';

interface LivePageDeps {
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
  new ApiError('unavailable', 'Too many live streams are open. Poll the lists instead.', {
    headers: { 'Retry-After': '15' },
  });

/** A client that watches, and how to write to it. */
export interface Stream {
  companyId: string;
  /** The only app whose attempts are shown; null for all. */
  appId: string | null;
  /** Of a visit of the portal; null for everybody else. */
  linkId: string | null;
  /** Returns false when the client does not read fast enough. */
  write: (text: string) => boolean;
  /** Resolves to false when the caller may not watch any more. */
  isAllowed: () => Promise<boolean>;
  end: () => void;
}

/** The streams of this process, within bounds. */
export interface LiveStreams {
  /** Returns false when there are as many as there may be. */
  open: (stream: Stream) => boolean;
  close: (stream: Stream) => void;
  hear: (news: LiveNews) => void;
  /** Tells dispatchers who is watched, ends what may not go on, and keeps the others alive. */
  tick: () => Promise<void>;
  /** Ends all of them, and opens no more. */
  stop: () => void;
}

interface LiveStreamsDeps {
  /** Says that these companies are watched. */
  watch: (companyIds: readonly string[]) => Promise<void>;
}

/** A page opens one stream. Streams of visitors have limits of their own, so that they leave room for the company. */
const MAX_OF_COMPANY = 20;
const MAX_OF_VISIT = 2;
const MAX_OF_VISITORS = 100;
const MAX_STREAMS = 500;
/** A ping every 15 s, and everything else every 5. */
const TICKS_OF_PING = 3;

export function createLiveStreams({ watch }: LiveStreamsDeps): LiveStreams {
  const byCompany = new Map<string, Set<Stream>>();
  let size = 0;
  let ticks = 0;
  let isStopped = false;

  const all = (): Stream[] => [...byCompany.values()].flatMap((streams) => [...streams]);

  function close(stream: Stream): void {
    const streams = byCompany.get(stream.companyId);
    if (!streams?.delete(stream)) return;
    size -= 1;
    if (streams.size === 0) byCompany.delete(stream.companyId);
  }

  function end(stream: Stream): void {
    close(stream);
    stream.end();
  }

  async function check(stream: Stream): Promise<void> {
    if (!(await stream.isAllowed())) end(stream);
    else if (ticks % TICKS_OF_PING === 0 && !stream.write(PING)) end(stream);
  }

  return {
    open(stream) {
      const { companyId } = stream;
      const streams = byCompany.get(companyId) ?? new Set();
      if (isStopped || size >= MAX_STREAMS || !hasRoom(streams, stream)) return false;
      byCompany.set(companyId, streams.add(stream));
      size += 1;
      // The first one of a company cannot wait for the next round.
      if (streams.size === 1) void watch([companyId]).catch(() => undefined);
      return true;
    },
    close,
    hear(news) {
      for (const stream of byCompany.get(news.companyId) ?? []) {
        const text = textFor(stream, news);
        if (text !== '' && !stream.write(text)) end(stream);
      }
    },
    async tick() {
      ticks += 1;
      // Without Redis there is no news, and streams wait for it.
      await watch([...byCompany.keys()]).catch(() => undefined);
      await Promise.all(all().map(check));
    },
    stop() {
      isStopped = true;
      for (const stream of all()) end(stream);
    },
  };
}

/** `streams` are those of its company. */
function hasRoom(streams: ReadonlySet<Stream>, { linkId }: Stream): boolean {
  const ofVisitors = [...streams].filter((each) => each.linkId !== null);
  if (linkId === null) return streams.size - ofVisitors.length < MAX_OF_COMPANY;
  const ofVisit = ofVisitors.filter((each) => each.linkId === linkId);
  return ofVisit.length < MAX_OF_VISIT && ofVisitors.length < MAX_OF_VISITORS;
}

const PING = eventText('ping', {});

function textFor({ appId }: Stream, { attempts, hasMore }: LiveNews): string {
  const shown = attempts.filter((attempt) => appId === null || attempt.appId === appId);
  const texts = shown.map((attempt) => eventText('attempt', attempt));
  return [...texts, hasMore ? eventText('more', {}) : ''].join('');
}

/** HTML, 9.2.6: JSON has no line breaks of its own. */
function eventText(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

const EVERY_MS = 5_000;
/** Longer than three rounds, so that one that is late ends nothing. */
const WATCHED_MS = 20_000;

/** Opens the streams of attempts. They end when a stop begins: requests would be waited for. */
export function openLive(
  { logger, lifecycle }: ServiceContext<GatewayConfig>,
  { live, onNews }: Pick<GatewayRedis, 'live' | 'onNews'>,
): LiveStreams {
  const streams = createLiveStreams({
    watch: (companyIds) => live.watch(companyIds, WATCHED_MS),
  });
  onNews(streams.hear);
  const loop = createLoop({ name: 'live streams', everyMs: EVERY_MS, run: streams.tick, logger });
  loop.start();
  lifecycle.stopping.addEventListener('abort', streams.stop, { once: true });
  lifecycle.onStop('live streams', loop.stop);
  return streams;
}

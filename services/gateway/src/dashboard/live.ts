import type { LiveNews } from '@posthorn/platform/redis/live-attempts.ts';
import { type Request, type Response, Router } from 'express';
import { ApiError } from '../api-error.ts';
import { type KnownPage, refuseMethod } from '../http/known-routes.ts';
import { createIdentifyAllowed, type IdentifyDeps } from '../http/pipeline.ts';
import { assertAllowed, type Caller } from '../keys/rights.ts';
import type { RateLimits } from '../limits/rate-limits.ts';

/** The stream of one client. */
export interface Stream {
  caller: Pick<Caller, 'companyId' | 'appId' | 'portal'>;
  /** Returns false when the client does not read fast enough. */
  write: (text: string) => boolean;
  /** Resolves to false when the caller has lost its permission. */
  isAllowed: () => Promise<boolean>;
  end: () => void;
}

/** A page opens one stream. Streams of visitors have limits of their own, so that they leave room for the company. */
const MAX_OF_COMPANY = 20;
const MAX_OF_PORTAL_SESSION = 2;
const MAX_OF_VISITORS = 100;
const MAX_STREAMS = 500;
/** A tick comes every 5 s, and a ping every 15. */
const TICKS_PER_PING = 3;

/** The streams of this process, by company. */
export class LiveStreams {
  readonly #byCompany = new Map<string, Set<Stream>>();
  readonly #watch: (companyIds: string[]) => Promise<void>;
  #ticks = 0;
  #isStopped = false;

  /** `watch` announces to dispatchers that these companies have streams. Streams without Redis wait for it. */
  constructor(watch: (companyIds: string[]) => Promise<void>) {
    this.#watch = (companyIds) => watch(companyIds).catch(() => undefined);
  }

  /** Returns false when there are as many streams as there may be. */
  open(stream: Stream): boolean {
    const { companyId } = stream.caller;
    const streams = this.#byCompany.get(companyId) ?? new Set();
    const isFull = this.#all().length >= MAX_STREAMS || !hasRoom(streams, stream);
    if (this.#isStopped || isFull) return false;
    this.#byCompany.set(companyId, streams.add(stream));
    // The first stream of a company cannot wait for the next tick.
    if (streams.size === 1) void this.#watch([companyId]);
    return true;
  }

  close(stream: Stream): void {
    const { companyId } = stream.caller;
    const streams = this.#byCompany.get(companyId);
    streams?.delete(stream);
    if (streams?.size === 0) this.#byCompany.delete(companyId);
  }

  publish(news: LiveNews): void {
    for (const stream of this.#byCompany.get(news.companyId) ?? []) {
      this.#write(stream, textFor(stream, news));
    }
  }

  /** Renews the announcement to dispatchers, ends streams that have lost their permission, and keeps the others alive. */
  async tick(): Promise<void> {
    this.#ticks += 1;
    await this.#watch([...this.#byCompany.keys()]);
    const ping = this.#ticks % TICKS_PER_PING === 0 ? eventText('ping', {}) : '';
    await Promise.all(
      this.#all().map(async (stream) => {
        if (await stream.isAllowed()) this.#write(stream, ping);
        else this.#end(stream);
      }),
    );
  }

  /** Ends all streams, and opens no more. */
  stop(): void {
    this.#isStopped = true;
    for (const stream of this.#all()) this.#end(stream);
  }

  #write(stream: Stream, text: string): void {
    if (text !== '' && !stream.write(text)) this.#end(stream);
  }

  #end(stream: Stream): void {
    this.close(stream);
    stream.end();
  }

  #all(): Stream[] {
    return [...this.#byCompany.values()].flatMap((streams) => [...streams]);
  }
}

/** `streams` are those of its company. */
function hasRoom(streams: ReadonlySet<Stream>, { caller: { portal } }: Stream): boolean {
  const links = [...streams].flatMap((each) => each.caller.portal?.linkId ?? []);
  if (!portal) return streams.size - links.length < MAX_OF_COMPANY;
  const ofSession = links.filter((linkId) => linkId === portal.linkId);
  return ofSession.length < MAX_OF_PORTAL_SESSION && links.length < MAX_OF_VISITORS;
}

function textFor({ caller: { appId } }: Stream, { attempts, hasMore }: LiveNews): string {
  const shown = attempts.filter((attempt) => appId === null || attempt.appId === appId);
  const texts = shown.map((attempt) => eventText('attempt', attempt));
  return [...texts, hasMore ? eventText('more', {}) : ''].join('');
}

/** HTML, 9.2.6: JSON has no line breaks of its own. */
function eventText(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

export interface LivePageDeps extends IdentifyDeps {
  limits: Pick<RateLimits, 'limitCompany'>;
  streams: Pick<LiveStreams, 'open' | 'close'>;
}

const PATH = '/api/v1/live';
export const LIVE_PAGE: KnownPage = { path: PATH, methods: ['GET'], isStream: true };

const NEEDED = { scope: 'read', portal: 'view' } as const;
/** A stream whose client has so much unread is ended. */
const MAX_UNREAD_BYTES = 65_536;

/** Streams attempts as they end (docs/contract.md C21.5). */
export function livePage({ streams, limits, ...deps }: LivePageDeps): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const identify = createIdentifyAllowed(NEEDED, deps);
  const serve = async (request: Request, response: Response): Promise<void> => {
    await identify(request, response);
    limits.limitCompany(response);
    if (request.method === 'HEAD') {
      response.type('text/event-stream').end();
      return;
    }
    const stream = streamTo(request, response, deps);
    if (!streams.open(stream)) throw tooMany();
    // A browser that has gone closes its sending side. The response would go on, but its place is needed.
    const { socket } = request;
    socket.once('end', stream.end);
    response.once('close', () => {
      socket.off('end', stream.end);
      streams.close(stream);
    });
    // Without X-Accel-Buffering, nginx buffers the response.
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
    // A comment, which shows the client at once that the stream is open.
    response.write(': open\n\n');
  };
  router.get(PATH, serve);
  router.all(PATH, refuseMethod(['GET']));
  return router;
}

function streamTo(
  request: Request,
  response: Response,
  { identify }: Pick<IdentifyDeps, 'identify'>,
): Stream {
  return {
    caller: response.locals.caller as Caller,
    write(text) {
      response.write(text);
      return response.writableLength <= MAX_UNREAD_BYTES;
    },
    async isAllowed() {
      try {
        assertAllowed(NEEDED, await identify(request));
        return true;
      } catch (error) {
        // An outage does not end a stream.
        return !(error instanceof ApiError) || error.status >= 500;
      }
    },
    end: () => response.end(),
  };
}

const tooMany = (): ApiError =>
  new ApiError('unavailable', 'Too many live streams are open. Poll the lists instead.', {
    headers: { 'Retry-After': '15' },
  });

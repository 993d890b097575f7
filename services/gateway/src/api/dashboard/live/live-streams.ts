import type { LiveNews } from '@posthorn/platform/redis/live-attempts.ts';

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

export interface LiveStreamsDeps {
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

import { endedAtMs } from '@posthorn/domain/delivery/delivery.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type {
  LiveAttempt,
  LiveAttempts,
  LiveNews,
} from '@posthorn/platform/redis/live-attempts.ts';
import {
  type ReadingPositions,
  REPEAT_REPORT_MS,
} from '@posthorn/platform/redis/reading-positions.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { AnnounceAttempt, SettledAttempt } from './settle.ts';

/** Reports to the gateways how far the records of fresh messages are begun here. */
export interface ReadingReporter {
  /** Notes a record of the topic of fresh messages that is begun now. */
  note: (record: Pick<LogRecord, 'partition' | 'timestampMs'>) => void;
  tick: () => void;
  /** Ends the reports of all partitions until a record of them is begun: they may be of another dispatcher now. */
  forget: () => void;
}

export const REPORT_READING_EVERY_MS = 200;

export function createReadingReporter(
  positions: Pick<ReadingPositions, 'report'>,
  monotonicMs: () => number,
): ReadingReporter {
  const latest = new Map<number, number>();
  let changed = new Map<number, number>();
  let repeatedAtMs = monotonicMs();
  return {
    note({ partition, timestampMs }) {
      // The latest, not the last: else a gateway whose clock is ahead would count its records as unread for as long.
      const atMs = Math.max(timestampMs, latest.get(partition) ?? 0);
      latest.set(partition, atMs);
      changed.set(partition, atMs);
    },
    tick() {
      const isRepeated = monotonicMs() - repeatedAtMs >= REPEAT_REPORT_MS;
      if (isRepeated) repeatedAtMs = monotonicMs();
      const due = isRepeated ? new Map(latest) : changed;
      if (due.size > 0) positions.report(due);
      changed = new Map();
    },
    forget() {
      latest.clear();
      changed.clear();
    },
  };
}

export interface LiveAnnouncements {
  announce: AnnounceAttempt;
  start: () => void;
  /** Sends what has gathered, and reads who is watched. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

interface LiveAnnouncementsDeps {
  live: Pick<LiveAttempts, 'readWatched' | 'publish'>;
  logger: Pick<Logger, 'warn'>;
}

const ANNOUNCE_EVERY_MS = 1_000;
/** A page shows no more in a second, and naming more would only cost more: further attempts are `hasMore`. */
const MAX_NAMED = 20;

/** Attempts of companies that nobody watches cost one look-up in a set. */
export function createLiveAnnouncements({
  live,
  logger,
}: LiveAnnouncementsDeps): LiveAnnouncements {
  let watched: ReadonlySet<string> = new Set();
  const gathered = new Map<string, LiveNews>();

  function announce(settled: SettledAttempt): void {
    const { companyId } = settled.due;
    if (!watched.has(companyId)) return;
    const news = gathered.get(companyId) ?? { companyId, attempts: [], hasMore: false };
    gathered.set(companyId, news);
    if (news.attempts.length < MAX_NAMED) news.attempts.push(describe(settled));
    else news.hasMore = true;
  }

  async function run(): Promise<void> {
    for (const news of gathered.values()) live.publish(news);
    gathered.clear();
    // Without Redis nothing is announced.
    watched = await live.readWatched().catch(() => new Set<string>());
  }

  const loop = createLoop({ name: 'live attempts', everyMs: ANNOUNCE_EVERY_MS, run, logger });
  return { announce, start: loop.start, tick: loop.tick, stop: loop.stop };
}

function describe({ due, attempt, appId, cancelReason }: SettledAttempt): LiveAttempt {
  const { messageId, deliveryId, webhookId } = due;
  return {
    messageId,
    deliveryId,
    webhookId,
    appId: appId ?? undefined,
    outcome: attempt.outcome,
    status: statusAfter(attempt, cancelReason),
    attemptNumber: attempt.number,
    at: new Date(endedAtMs(attempt)).toISOString(),
  };
}

/** A resend that failed leaves its delivery as it was. */
function statusAfter(
  { outcome, trigger }: SettledAttempt['attempt'],
  cancelReason: SettledAttempt['cancelReason'],
): LiveAttempt['status'] {
  if (outcome === 'success') return 'delivered';
  if (trigger === 'resend') return undefined;
  return cancelReason ? 'cancelled' : 'pending';
}

import { endedAtMs } from '@posthorn/domain/message/delivery.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import type {
  LiveAttempt,
  LiveAttempts,
  LiveNews,
} from '@posthorn/platform/redis/live-attempts.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { AnnounceAttempt, SettledAttempt } from '../settle/settle-delivery.ts';

export interface LiveAnnouncements {
  announce: AnnounceAttempt;
  start: () => void;
  /** Sends what has gathered, and reads who is watched. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

export interface LiveAnnouncementsDeps {
  live: Pick<LiveAttempts, 'readWatched' | 'publish'>;
  logger: Pick<Logger, 'warn'>;
}

const EVERY_MS = 1_000;
/** A page shows no more in a second, and it would only cost more: what comes after is `hasMore`. */
const MAX_NAMED = 20;

/** Attempts of companies that nobody watches cost one look into a set. */
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
    // Without Redis nobody is told anything.
    watched = await live.readWatched().catch(() => new Set<string>());
  }

  const loop = createLoop({ name: 'live attempts', everyMs: EVERY_MS, run, logger });
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

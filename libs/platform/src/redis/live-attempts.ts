import type { Outcome } from '@posthorn/domain/outcome.ts';
import type { RedisClient } from './connect.ts';

/** An attempt that has just ended, as whoever watches is told of it. */
export interface LiveAttempt {
  messageId: string;
  deliveryId: string;
  webhookId: string;
  /** Absent for a global webhook. */
  appId?: string | undefined;
  outcome: Outcome;
  /** What became of the delivery; absent when a failed resend left it as it was. */
  status?: 'pending' | 'delivered' | 'cancelled' | undefined;
  attemptNumber: number;
  /** When it ended, ISO 8601. */
  at: string;
}

/** The attempts of one company in the last second. */
export interface LiveNews {
  companyId: string;
  attempts: LiveAttempt[];
  /** There were more, which are not named. */
  hasMore: boolean;
}

/**
 * News of attempts, from dispatchers to the gateways at which somebody watches. They are lost while Redis is away, and
 * nothing depends on them.
 */
export interface LiveAttempts {
  /** Says that these companies are watched, for `ttlMs` from now. Rejects without Redis. */
  watch: (companyIds: readonly string[], ttlMs: number) => Promise<void>;
  /** Rejects without Redis. */
  readWatched: () => Promise<Set<string>>;
  /** Sends news without waiting for Redis. */
  publish: (news: LiveNews) => void;
}

const KEY = 'live-watched';
const CHANNEL = 'live-attempts';
/** Companies that are watched at a time; news of others do not come. */
const MAX_WATCHED = 1_000;

/** Uses one sorted set, by when the watch ends. */
export function createLiveAttempts(
  redis: RedisClient,
  prefix: string,
  nowMs: () => number,
): LiveAttempts {
  const key = prefix + KEY;
  return {
    async watch(companyIds, ttlMs) {
      if (companyIds.length === 0) return;
      const endsAtMs = nowMs() + ttlMs;
      await redis.zadd(key, ...companyIds.flatMap((id) => [endsAtMs, id]));
      await redis.zremrangebyscore(key, '-inf', nowMs());
    },
    async readWatched() {
      const found = await redis.zrangebyscore(key, nowMs(), '+inf', 'LIMIT', 0, MAX_WATCHED);
      return new Set(found);
    },
    publish(news) {
      void redis.publish(prefix + CHANNEL, JSON.stringify(news)).catch(() => undefined);
    },
  };
}

/** Listens on the connection `subscriber`, which takes no other commands. */
export function listenForLiveAttempts(
  subscriber: RedisClient,
  prefix: string,
  onNews: (news: LiveNews) => void,
): void {
  const channel = prefix + CHANNEL;
  subscriber.on('ready', () => {
    void subscriber.subscribe(channel).catch(() => undefined);
  });
  subscriber.on('message', (from: string, text: string) => {
    if (from === channel) onNews(JSON.parse(text) as LiveNews);
  });
}

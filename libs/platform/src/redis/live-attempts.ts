import { OUTCOMES } from '@posthorn/domain/delivery/delivery.ts';
import { z } from 'zod';
import type { Logger } from '../service/logger.ts';
import { parseStored } from './commands.ts';
import { onEachConnection, type RedisClient } from './connect.ts';

const attemptSchema = z.object({
  messageId: z.string(),
  deliveryId: z.string(),
  webhookId: z.string(),
  /** Absent for a global webhook. */
  appId: z.string().optional(),
  outcome: z.enum(OUTCOMES),
  /** The status of the delivery; absent when a failed resend left it as it was. */
  status: z.enum(['pending', 'delivered', 'cancelled']).optional(),
  attemptNumber: z.number(),
  /** When it ended, ISO 8601. */
  at: z.string(),
});

const newsSchema = z.object({
  companyId: z.string(),
  attempts: z.array(attemptSchema),
  /** There were more, which are not named. */
  hasMore: z.boolean(),
});

/** An attempt that has just ended, as those who watch its company see it. */
export type LiveAttempt = z.infer<typeof attemptSchema>;

/** The attempts of one company in the last second. */
export type LiveNews = z.infer<typeof newsSchema>;

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

/**
 * Listens on the connection `subscriber`, which takes no other commands. Drops and logs a message that no dispatcher
 * has sent: an exception here would end the process.
 */
export function listenForLiveAttempts(
  subscriber: RedisClient,
  prefix: string,
  { onNews, logger }: { onNews: (news: LiveNews) => void; logger: Pick<Logger, 'warn'> },
): void {
  const channel = prefix + CHANNEL;
  onEachConnection(subscriber, () => {
    void subscriber.subscribe(channel).catch(() => undefined);
  });
  subscriber.on('message', (from: string, text: string) => {
    if (from !== channel) return;
    const news = parseStored(newsSchema, text);
    if (news) onNews(news);
    else logger.warn({ channel, chars: text.length }, 'ignored a malformed message in Redis');
  });
}

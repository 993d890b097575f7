import type { Redis } from 'ioredis';
import { WINDOW_MS, type News, type Totals } from './rate-limit-counts.ts';

/** Adds to what all gateways count together; rejects while Redis is away. */
export type AddToShared = (news: readonly News[]) => Promise<Totals[]>;

/** A minute is asked for until the next one has ended. */
const KEPT_MS = 2 * WINDOW_MS;

/** One pipeline for all keys: three cheap commands each, one round trip together. */
export function createAddToShared(redis: Redis, prefix: string): AddToShared {
  const nameOf = (key: string, minute: number): string => `${prefix}rate:${key}:${minute}`;
  return async (news) => {
    if (redis.status !== 'ready') throw new Error('Redis is away');
    const pipeline = redis.pipeline();
    for (const { key, minute, added } of news) {
      const name = nameOf(key, minute);
      pipeline
        .incrby(name, added)
        .pexpire(name, KEPT_MS)
        .get(nameOf(key, minute - 1));
    }
    const answers = (await pipeline.exec()) ?? [];
    const numbers = answers.map(([error, value]) => {
      if (error) throw error;
      return Number(value);
    });
    return news.map((_, index) => ({
      current: numbers[index * 3] ?? 0,
      previous: numbers[index * 3 + 2] ?? 0,
    }));
  };
}

import { requiredAt } from '@posthorn/domain/required.ts';
import type { Redis } from 'ioredis';
import { WINDOW_MS, type Increment, type Totals } from './rate-limit-counts.ts';

/** Adds to the counts of all gateways and returns the totals, in the same order. Rejects while Redis is away. */
export type AddToSharedCounts = (increments: readonly Increment[]) => Promise<Totals[]>;

/** The count of a minute is read until the next minute has ended. */
const EXPIRE_AFTER_MS = 2 * WINDOW_MS;

/** One pipeline for all keys: three cheap commands per key, one round trip in all. */
export function createAddToSharedCounts(redis: Redis, prefix: string): AddToSharedCounts {
  const nameOf = (key: string, minute: number): string => `${prefix}rate:${key}:${minute}`;
  return async (increments) => {
    if (redis.status !== 'ready') throw new Error('Redis is away');
    const pipeline = redis.pipeline();
    for (const { key, minute, added } of increments) {
      const name = nameOf(key, minute);
      pipeline
        .incrby(name, added)
        .pexpire(name, EXPIRE_AFTER_MS)
        .get(nameOf(key, minute - 1));
    }
    const replies = (await pipeline.exec()) ?? [];
    const numbers = replies.map(([error, value]) => {
      if (error) throw error;
      return Number(value);
    });
    return increments.map((_, index) => ({
      current: requiredAt(numbers, index * 3, 'count'),
      previous: requiredAt(numbers, index * 3 + 2, 'count'),
    }));
  };
}

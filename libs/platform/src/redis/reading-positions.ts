import type { RedisClient } from './connect.ts';

/** Partition → when the record that was begun last was written, in milliseconds since 1970. */
export type ReadingTimes = ReadonlyMap<number, number>;

/**
 * How far dispatchers have begun the records of fresh messages. The committed offset is no measure of it: one attempt
 * that hangs keeps it back by everything that was begun behind it.
 */
export interface ReadingPositions {
  /** Stores what has changed, without waiting for Redis; while Redis is away nothing is stored. */
  report: (changed: ReadingTimes) => void;
  /**
   * Returns the positions in these partitions, without those that are unknown; null when no dispatcher has reported for
   * READING_TTL_MS. Rejects without Redis.
   */
  read: (partitions: ReadonlySet<number>) => Promise<ReadingTimes | null>;
}

/** Dispatchers report again before this, although nothing has changed. */
export const READING_TTL_MS = 300_000;
const KEY = 'reading-positions';
/** Exists as long as the key, and names no partition. */
const REPORTED_FIELD = 'reported';

/** Uses one hash, of all partitions. */
export function createReadingPositions(redis: RedisClient, prefix: string): ReadingPositions {
  const key = prefix + KEY;
  return {
    report(changed) {
      const fields = [...changed].flatMap(([partition, atMs]) => [String(partition), String(atMs)]);
      void redis
        .hset(key, REPORTED_FIELD, '1', ...fields)
        .then(() => redis.pexpire(key, READING_TTL_MS))
        .catch(() => undefined);
    },
    async read(partitions) {
      const wanted = [...partitions];
      const [reported, ...times] = await redis.hmget(key, REPORTED_FIELD, ...wanted.map(String));
      if (reported === null || reported === undefined) return null;
      const positions = new Map<number, number>();
      for (const [index, partition] of wanted.entries()) {
        const atMs = times[index];
        if (atMs) positions.set(partition, Number(atMs));
      }
      return positions;
    },
  };
}

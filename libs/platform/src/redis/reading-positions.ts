import type { RedisClient } from './connect.ts';

/** Partition → when the latest record that was begun was written, in milliseconds since 1970. */
type ReadingTimes = ReadonlyMap<number, number>;
/** The same; null for a partition that no dispatcher has reported for REPORT_VALID_MS. */
export type ReportedTimes = ReadonlyMap<number, number | null>;

/**
 * How far dispatchers have begun the records of fresh messages. The committed offset is no measure of it: one attempt
 * that hangs keeps it back by everything that was begun behind it.
 */
export interface ReadingPositions {
  /** Stores these positions, without waiting for Redis; while Redis is away nothing is stored. */
  report: (times: ReadingTimes) => void;
  /** Returns the positions in these partitions. Rejects without Redis. */
  read: (partitions: ReadonlySet<number>) => Promise<ReportedTimes>;
}

/** A dispatcher repeats the position of each of its partitions after this time. */
export const REPEAT_REPORT_MS = 2_000;
/**
 * An older report is of a dispatcher that is gone, that has lost Redis, or that has lost the partition. Compared between
 * the clocks of two processes.
 */
export const REPORT_VALID_MS = 10_000;
/** Redis forgets the positions when no dispatcher reports for this time. */
const TTL_MS = 300_000;
const KEY = 'reading-positions';

/** Uses one hash, of all partitions. A value is `<when the record was written>/<when that was reported>`. */
export function createReadingPositions(
  redis: RedisClient,
  prefix: string,
  nowMs: () => number,
): ReadingPositions {
  const key = prefix + KEY;
  return {
    report(times) {
      const reportedAtMs = nowMs();
      const fields = [...times].flatMap(([partition, atMs]) => [
        String(partition),
        `${atMs}/${reportedAtMs}`,
      ]);
      void redis
        .hset(key, ...fields)
        .then(() => redis.pexpire(key, TTL_MS))
        .catch(() => undefined);
    },
    async read(partitions) {
      const wanted = [...partitions];
      if (wanted.length === 0) return new Map();
      const values = await redis.hmget(key, ...wanted.map(String));
      const sinceMs = nowMs() - REPORT_VALID_MS;
      return new Map(
        wanted.map((partition, index) => [partition, timeOf(values[index] ?? '', sinceMs)]),
      );
    },
  };
}

/** Returns null for a value that was reported before `sinceMs`, or never. */
function timeOf(value: string, sinceMs: number): number | null {
  const [atMs, reportedAtMs] = value.split('/').map(Number);
  if (atMs === undefined || reportedAtMs === undefined) return null;
  return reportedAtMs >= sinceMs ? atMs : null;
}

import {
  sendAll,
  type Command,
  type Reply,
} from '@posthorn/platform/redis/commands/across-slots.ts';
import type { RedisClient } from '@posthorn/platform/redis/connect.ts';
import { WINDOW_MS, type Increment, type Totals } from './rate-limit-counts.ts';

/**
 * Adds to the counts of all gateways and returns the totals, in the same order, null where nothing was added. Rejects
 * while Redis is away.
 */
export type AddToSharedCounts = (increments: readonly Increment[]) => Promise<(Totals | null)[]>;

/** The count of a minute is read until the next minute has ended. */
const EXPIRE_AFTER_MS = 2 * WINDOW_MS;
const COMMANDS = 3;

/** One pipeline for all keys: three cheap commands per key, one round trip in all. */
export function createAddToSharedCounts(redis: RedisClient, prefix: string): AddToSharedCounts {
  const nameOf = (key: string, minute: number): string => `${prefix}rate:${key}:${minute}`;
  const toCommands = ({ key, minute, added }: Increment): Command[] => {
    const name = nameOf(key, minute);
    return [
      ['incrby', name, added],
      ['pexpire', name, EXPIRE_AFTER_MS],
      ['get', nameOf(key, minute - 1)],
    ];
  };
  return async (increments) => {
    if (redis.status !== 'ready') throw new Error('Redis is away');
    const replies = await sendAll(redis, increments.flatMap(toCommands));
    return increments.map((_, index) => {
      return totalsOf(replies.slice(index * COMMANDS, (index + 1) * COMMANDS));
    });
  };
}

/** In a cluster the two minutes may be on different nodes, of which one may be away. */
function totalsOf([added, , previous]: Reply[]): Totals | null {
  const current = numberOf(added);
  return current === null ? null : { current, previous: numberOf(previous) ?? 0 };
}

/** Zero for a key that does not exist, null for one without a number. */
function numberOf(reply: Reply | undefined): number | null {
  if (!reply) return null;
  const [error, value] = reply;
  const number = Number(value);
  return error || !Number.isFinite(number) ? null : number;
}

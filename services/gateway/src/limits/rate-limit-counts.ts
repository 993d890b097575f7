import { type RedisCommand, type Reply, sendAll } from '@posthorn/platform/redis/commands.ts';
import type { RedisClient } from '@posthorn/platform/redis/connect.ts';

export const WINDOW_MS = 60_000;

export interface Decision {
  isAllowed: boolean;
  limit: number;
  /** How many more are allowed now. */
  remaining: number;
  /** When allowed, until the minute ends. When refused, until one is allowed again if none is counted before. */
  resetMs: number;
}

/** The count of one process for a key in one minute that it has not shared yet. */
export interface Increment {
  key: string;
  /** Minutes since 1970. */
  minute: number;
  added: number;
}

/** The count of all processes in the minute and the one before, as far as they have shared it. */
interface Totals {
  previous: number;
  current: number;
}

type Share = (increments: readonly Increment[]) => Promise<readonly (Totals | null)[]>;

export interface RateCounts {
  /**
   * Counts so many, one by default, unless they are refused: a client that keeps sending is not refused for longer. More
   * than the limit are allowed when at most one was counted before: that of the request which has so many.
   */
  take: (key: string, amount?: number) => Decision;
  /** The decision of the next `take`; counts nothing. */
  peek: (key: string) => Decision;
  /**
   * Passes new counts to `add`, which returns the totals in the same order, null for one that it could not add. Never
   * rejects: what could not be shared is shared the next time.
   */
  share: (add: Share) => Promise<void>;
  /** Number of keys in memory. */
  size: () => number;
}

interface RateBounds {
  /** Allowed in any minute. */
  limit: number;
  /** Keys in memory; the least recently counted are dropped first. */
  maxKeys: number;
  nowMs: () => number;
}

interface Count extends Totals {
  key: string;
  minute: number;
  /** The part of `current` that is not shared yet. */
  unsent: number;
}

/** Counts below this part of the limit are not shared, so that most keys never cost a Redis command. */
const MIN_SHARED_PART = 1 / 1_000;
/** Each takes about 30 µs, so that a flood of addresses takes 3 ms per round. The rest is shared in the next. */
const MAX_SHARED_KEYS = 100;

/**
 * Approximates a sliding minute by two fixed ones: the previous minute counts by the part of it that is
 * within the last 60 s. This takes two numbers per key, and is exact if the requests of the previous
 * minute were spread evenly.
 */
export function createRateCounts({ limit, maxKeys, nowMs }: RateBounds): RateCounts {
  const counts = new Map<string, Count>();
  const changed = new Set<Count>();
  const minShared = Math.ceil(limit * MIN_SHARED_PART);

  /** Makes the count of the key the most recently used one, of this minute. */
  function touch(key: string, minute: number): Count {
    const found = counts.get(key);
    const count = found ?? { key, minute, previous: 0, current: 0, unsent: 0 };
    counts.delete(key);
    counts.set(key, count);
    if (!found && counts.size > maxKeys) dropOldest();
    if (count.minute !== minute) startMinute(count, minute);
    return count;
  }

  function dropOldest(): void {
    for (const [key, count] of counts) {
      counts.delete(key);
      changed.delete(count);
      return;
    }
  }

  return {
    peek(key) {
      const atMs = nowMs();
      const minute = Math.floor(atMs / WINDOW_MS);
      const count = counts.has(key) ? touch(key, minute) : { previous: 0, current: 0 };
      return decide(count, { limit, amount: 1 }, WINDOW_MS - (atMs % WINDOW_MS));
    },
    take(key, amount = 1) {
      const atMs = nowMs();
      const count = touch(key, Math.floor(atMs / WINDOW_MS));
      const decision = decide(count, { limit, amount }, WINDOW_MS - (atMs % WINDOW_MS));
      if (!decision.isAllowed) return decision;
      count.current += amount;
      count.unsent += amount;
      if (count.unsent >= minShared) changed.add(count);
      return decision;
    },
    share: (add) => share(changed, add),
    size: () => counts.size,
  };
}

/** `leftMs` is the remainder of this minute, and so the part of the previous one that still counts. */
function decide(
  { previous, current }: Totals,
  { limit, amount }: { limit: number; amount: number },
  leftMs: number,
): Decision {
  const needed = Math.max(1, Math.min(amount, limit - 1));
  const free = limit - current - (previous * leftMs) / WINDOW_MS;
  if (free < needed) {
    const resetMs = waitMs(previous, current, limit - needed, leftMs);
    return { isAllowed: false, limit, remaining: 0, resetMs };
  }
  const remaining = Math.max(0, Math.floor(free - amount));
  return { isAllowed: true, limit, remaining, resetMs: leftMs };
}

/** Returns the time until enough of `previous`, and then of `current`, has left the window for these others to be left. */
function waitMs(previous: number, current: number, others: number, leftMs: number): number {
  return current <= others
    ? Math.ceil(leftMs - ((others - current) * WINDOW_MS) / previous)
    : Math.ceil(leftMs + WINDOW_MS - (others * WINDOW_MS) / current);
}

async function share(changed: Set<Count>, add: Share): Promise<void> {
  const counts = firstOf(changed, MAX_SHARED_KEYS);
  if (counts.length === 0) return;
  const increments = counts.map(takeIncrement);
  for (const count of counts) changed.delete(count);
  const totals = await add(increments).catch(() => []);
  increments.forEach((one, index) => {
    const found = totals[index];
    if (found) applyTotals(one, found);
    else if (restoreIncrement(one)) changed.add(one.count);
  });
}

interface SharedIncrement extends Increment {
  count: Count;
}

function takeIncrement(count: Count): SharedIncrement {
  const { key, minute, unsent: added } = count;
  count.unsent = 0;
  return { key, minute, added, count };
}

/** Counts only rise: a Redis that was emptied resets nothing here. */
function applyTotals({ count, minute }: SharedIncrement, totals: Totals): void {
  if (count.minute !== minute) return;
  count.previous = Math.max(count.previous, totals.previous);
  count.current = Math.max(count.current, totals.current + count.unsent);
}

/** Returns false when the minute has ended and the increment is lost. */
function restoreIncrement({ count, minute, added }: SharedIncrement): boolean {
  if (count.minute !== minute) return false;
  count.unsent += added;
  return true;
}

/**
 * Starts a new minute; after a gap or a jump of the clock nothing of the old ones is kept. What was not
 * shared by then, at most 0.1 % of the limit, is never shared.
 */
function startMinute(count: Count, minute: number): void {
  count.previous = minute === count.minute + 1 ? count.current : 0;
  count.current = 0;
  count.unsent = 0;
  count.minute = minute;
}

function firstOf(changed: ReadonlySet<Count>, max: number): Count[] {
  const first: Count[] = [];
  for (const count of changed) {
    if (first.length === max) break;
    first.push(count);
  }
  return first;
}

/**
 * Adds to the counts of all gateways and returns the totals, in the same order, null where nothing was added. Rejects
 * while Redis is away.
 */
type AddToSharedCounts = (increments: readonly Increment[]) => Promise<(Totals | null)[]>;

/** The count of a minute is read until the next minute has ended. */
const EXPIRE_AFTER_MS = 2 * WINDOW_MS;
const COMMANDS = 3;

/** One pipeline for all keys: three cheap commands per key, one round trip in all. */
export function createAddToSharedCounts(redis: RedisClient, prefix: string): AddToSharedCounts {
  const nameOf = (key: string, minute: number): string => `${prefix}rate:${key}:${minute}`;
  const toCommands = ({ key, minute, added }: Increment): RedisCommand[] => {
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

/** In a cluster the two minutes may be on different nodes, and one of the nodes may be away. */
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

export const WINDOW_MS = 60_000;

export interface Decision {
  isAllowed: boolean;
  limit: number;
  /** How many more are allowed now. */
  remaining: number;
  /** Allowed: until the minute ends. Refused: until one is allowed again, when none is counted meanwhile. */
  resetMs: number;
}

/** What one process has counted for a key within a minute since 1970, and not yet told the others. */
export interface News {
  key: string;
  minute: number;
  added: number;
}

/** What all processes together have counted, as far as they told. */
export interface Totals {
  previous: number;
  current: number;
}

export interface RateCounts {
  /** Counts one, unless it is refused: who keeps on asking is not kept out for longer. */
  take: (key: string) => Decision;
  /**
   * Tells `add` what is new and learns the totals, which it answers in the same order. Never
   * rejects: what could not be told is told the next time.
   */
  share: (add: (news: readonly News[]) => Promise<readonly Totals[]>) => Promise<void>;
  /** Keys that are kept. */
  size: () => number;
}

export interface RateBounds {
  /** At most so many in any minute. */
  limit: number;
  /** Keys that are kept; the least recently counted go first. */
  maxKeys: number;
  nowMs: () => number;
}

interface Count extends Totals {
  key: string;
  minute: number;
  /** The part of `current` that is news. */
  unsent: number;
}

/** What is less than this part of the limit is not worth telling: most keys never cost a command. */
const TELLING_PART = 1 / 1_000;
/** Some 30 µs each, so that a flood of addresses costs 3 ms a round; the others wait for the next. */
const MAX_TOLD = 100;

/**
 * A sliding minute out of two fixed ones: the previous minute counts by the part of it that still
 * lies within the last 60 s. Two numbers a key, and wrong only as far as the previous minute was uneven.
 */
export function createRateCounts({ limit, maxKeys, nowMs }: RateBounds): RateCounts {
  const counts = new Map<string, Count>();
  const changed = new Set<Count>();
  const worthTelling = Math.ceil(limit * TELLING_PART);

  function countOf(key: string, minute: number): Count {
    const found = counts.get(key);
    const count = found ?? { key, minute, previous: 0, current: 0, unsent: 0 };
    counts.delete(key);
    counts.set(key, count);
    if (!found && counts.size > maxKeys) forgetOldest();
    if (count.minute !== minute) roll(count, minute);
    return count;
  }

  function forgetOldest(): void {
    for (const [key, count] of counts) {
      counts.delete(key);
      changed.delete(count);
      return;
    }
  }

  return {
    take(key) {
      const atMs = nowMs();
      const count = countOf(key, Math.floor(atMs / WINDOW_MS));
      const decision = decide(count, limit, WINDOW_MS - (atMs % WINDOW_MS));
      if (!decision.isAllowed) return decision;
      count.current += 1;
      count.unsent += 1;
      if (count.unsent >= worthTelling) changed.add(count);
      return decision;
    },
    share: (add) => share(changed, add),
    size: () => counts.size,
  };
}

/** `leftMs`: of this minute, and so also what still counts of the previous one. */
function decide({ previous, current }: Totals, limit: number, leftMs: number): Decision {
  const room = limit - current - (previous * leftMs) / WINDOW_MS;
  return room < 1
    ? { isAllowed: false, limit, remaining: 0, resetMs: waitMs(previous, current, limit, leftMs) }
    : { isAllowed: true, limit, remaining: Math.floor(room - 1), resetMs: leftMs };
}

/** Until `previous`, as it leaves the window, and then `current` have made room for one. */
function waitMs(previous: number, current: number, limit: number, leftMs: number): number {
  const room = limit - 1;
  return current <= room
    ? Math.ceil(leftMs - ((room - current) * WINDOW_MS) / previous)
    : Math.ceil(leftMs + WINDOW_MS - (room * WINDOW_MS) / current);
}

async function share(changed: Set<Count>, add: Parameters<RateCounts['share']>[0]): Promise<void> {
  const told = firstOf(changed, MAX_TOLD);
  if (told.length === 0) return;
  const news = told.map(tell);
  for (const count of told) changed.delete(count);
  try {
    const totals = await add(news);
    news.forEach((one, index) => {
      learn(one, totals[index]);
    });
  } catch {
    for (const one of news) if (takeBack(one)) changed.add(one.count);
  }
}

interface Told extends News {
  count: Count;
}

function tell(count: Count): Told {
  const { key, minute, unsent: added } = count;
  count.unsent = 0;
  return { key, minute, added, count };
}

/** What is known to have happened stays known: a Redis that was emptied takes nothing back. */
function learn({ count, minute }: Told, totals: Totals | undefined): void {
  if (!totals || count.minute !== minute) return;
  count.previous = Math.max(count.previous, totals.previous);
  count.current = Math.max(count.current, totals.current + count.unsent);
}

function takeBack({ count, minute, added }: Told): boolean {
  if (count.minute !== minute) return false;
  count.unsent += added;
  return true;
}

/** After a gap or a jump of the clock nothing is left. What is untold at the turn, 0.1 % of the limit, stays so. */
function roll(count: Count, minute: number): void {
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

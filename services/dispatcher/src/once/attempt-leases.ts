import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { RunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';
import { createRecentIds, type RecentIds } from './recent-ids.ts';

export interface AttemptLeases {
  /** Work on an attempt that nobody else can have begins; answers what to call when it is over. */
  take: (attemptId: string) => () => void;
  /** The same for one that somebody may have begun: resolves when neither here nor elsewhere anybody works on it. */
  takeAlone: (attemptId: string) => Promise<() => void>;
  /** True while somebody here works on it, and for some time after. */
  isKnown: (attemptId: string) => boolean;
  /** Announces what has begun, and again what lasts; to be called often. */
  tick: () => void;
}

export interface LeaseDeps {
  running: RunningAttempts;
  monotonicMs: () => number;
  wait: (ms: number) => Promise<unknown>;
}

/** Most attempts end before this, and cost Redis nothing. */
const ANNOUNCED_AFTER_MS = 50;
/** By then an attempt that lasts is announced: its age, and the time to the next tick. */
export const ANNOUNCED_WITHIN_MS = 150;
/** What the attempts of a process that died wait for at most; a living one tells again in time. */
const LEASE_MS = 10_000;
const RENEWED_AFTER_MS = 4_000;
const ASK_AGAIN_MS = 250;
/** Work that lasts longer never ends; its consumer begins anew by then (watch-for-stalls.ts). */
const ABANDONED_AFTER_MS = 120_000;
/**
 * A record may be stored twice: a producer was not answered and sent again, a former owner of its
 * partition released it too. Its copy comes within seconds; this is half a minute at 1,500 a second.
 */
const REMEMBERED = 50_000;
const CLAIMS = { maxItems: 2_000, lingerMs: 2, maxInFlight: 2 };

interface Lease {
  /** Monotonic. */
  sinceMs: number;
  /** Who waits to have it alone. */
  waiting: (() => void)[];
}

interface State extends LeaseDeps {
  leases: Map<string, Lease>;
  /** When to tell next (monotonic), in that order: what is young, and what was announced. */
  young: Map<string, number>;
  announced: Map<string, number>;
  ended: string[];
  recent: RecentIds;
}

/**
 * Leases on attempts under way. When a partition changes hands while its former owner lives, or a
 * record has a copy, the second one waits for the first instead of sending again.
 * Only who may be the second asks; without Redis nobody is waited for.
 */
export function createAttemptLeases(deps: LeaseDeps): AttemptLeases {
  const state: State = {
    ...deps,
    leases: new Map(),
    young: new Map(),
    announced: new Map(),
    ended: [],
    recent: createRecentIds(REMEMBERED),
  };
  const claim = createClaim(deps.running);
  return {
    take: (attemptId) => hold(state, attemptId, false),
    isKnown: (attemptId) => state.leases.has(attemptId) || state.recent.has(attemptId),
    async takeAlone(attemptId) {
      for (;;) {
        const held = state.leases.get(attemptId);
        if (held && isAlive(state, attemptId)) {
          await Promise.race([endOf(held), deps.wait(ABANDONED_AFTER_MS)]);
        } else if (!(await claim(attemptId))) await deps.wait(ASK_AGAIN_MS);
        else if (state.leases.get(attemptId) === held) return hold(state, attemptId, true);
      }
    },
    tick: tick.bind(null, state),
  };
}

function hold(state: State, attemptId: string, isAnnounced: boolean): () => void {
  const { leases, young, announced, ended, recent } = state;
  const nowMs = state.monotonicMs();
  const lease: Lease = { sinceMs: nowMs, waiting: [] };
  leases.set(attemptId, lease);
  if (isAnnounced) announced.set(attemptId, nowMs + RENEWED_AFTER_MS);
  else young.set(attemptId, nowMs + ANNOUNCED_AFTER_MS);
  return () => {
    recent.add(attemptId);
    for (const goOn of lease.waiting) goOn();
    if (leases.get(attemptId) !== lease) return;
    leases.delete(attemptId);
    young.delete(attemptId);
    if (announced.delete(attemptId)) ended.push(attemptId);
  };
}

function isAlive({ leases, monotonicMs }: State, attemptId: string): boolean {
  const sinceMs = leases.get(attemptId)?.sinceMs ?? -Infinity;
  return monotonicMs() - sinceMs < ABANDONED_AFTER_MS;
}

function tick(state: State): void {
  const { running, young, announced, ended } = state;
  // Not what was taken again meanwhile: its announcement stands.
  const over = ended.splice(0).filter((id) => !announced.has(id));
  if (over.length > 0) running.withdraw(over);
  const nowMs = state.monotonicMs();
  const due = [...takeDue(young, nowMs), ...takeDue(announced, nowMs)];
  const alive = due.filter((id) => isAlive(state, id));
  for (const id of alive) announced.set(id, nowMs + RENEWED_AFTER_MS);
  if (alive.length > 0) running.announce(alive, LEASE_MS);
}

function endOf({ waiting }: Lease): Promise<void> {
  return new Promise((resolve) => waiting.push(resolve));
}

function takeDue(times: Map<string, number>, nowMs: number): string[] {
  const due: string[] = [];
  for (const [id, atMs] of times) {
    if (atMs > nowMs) break;
    due.push(id);
  }
  for (const id of due) times.delete(id);
  return due;
}

/** Claims are asked for together; without Redis everything is granted. */
function createClaim(running: RunningAttempts): (attemptId: string) => Promise<boolean> {
  const claims = createBatcher<string, boolean>({
    ...CLAIMS,
    run: async (ids) => {
      const claimed = await running.claim(ids, LEASE_MS).catch(() => new Set(ids));
      return ids.map((id) => claimed.has(id));
    },
  });
  return claims.add;
}

import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import type { IsOurs } from '@posthorn/platform/kafka/record-log.ts';
import type { RunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';

/** The right to work on an attempt alone. */
export interface HeldLease {
  /** To be called when the request was made: from then on nobody takes the lease over before its release. */
  markMade: () => void;
  /**
   * To be called right before the request. Returns false when the lease may have ended and the attempt have been made
   * meanwhile: this process was suspended, or the lease was taken over. The attempt is claimed again then.
   */
  begin: () => boolean;
  release: () => void;
}

export interface AttemptLeases {
  /** Takes the lease of an attempt that nobody else can be working on. `isOurs` is asked of its record. */
  take: (attemptId: string, isOurs: IsOurs) => HeldLease;
  /**
   * Takes the lease of an attempt that somebody may be working on, in this process or another, once
   * nobody does. Rejects with StoppedError when the process stops first.
   */
  takeWhenFree: (attemptId: string, isOurs: IsOurs) => Promise<HeldLease>;
  /** True while this process works on the attempt. */
  isHeld: (attemptId: string) => boolean;
  /** Announces all leases at once, because a former owner is asked for them next. */
  announceAll: () => void;
  /** Announces in Redis the leases that last, and withdraws the released ones. To be called every 50 ms. */
  tick: () => void;
}

export interface LeaseDeps {
  running: RunningAttempts;
  onReleased: (attemptId: string) => void;
  monotonicMs: () => number;
  /** Counts the milliseconds in which the stores answer (outage-free-clock.ts). */
  outageFreeMs: () => number;
  /** Resolves after this time, when the process stops, or when `signal` is aborted. */
  wait: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  isStopping: () => boolean;
}

/** Most attempts end before this, and cost Redis nothing. */
const ANNOUNCED_AFTER_MS = 50;
/** An attempt that lasts is announced by then: its age, and the time to the next tick. */
export const ANNOUNCED_WITHIN_MS = 150;
/** Attempts of a process that died are waited for this long at most; a living process renews in time. */
const LEASE_MS = 10_000;
const RENEWED_AFTER_MS = 4_000;
/** Less than LEASE_MS by the time that the announcement takes to Redis. */
const LASTS_MS = 9_000;
/**
 * Others know nothing of a lease that was not announced, but get the partition of a process that is silent only later
 * than this (group-timing.ts).
 */
const LASTS_UNANNOUNCED_MS = 4_000;
const CLAIMED_AGAIN_AFTER_MS = 250;
/**
 * Work on a record that is not ours any more has hung when it takes longer while the stores respond: stall-watch.ts has
 * replaced its consumer. Work that waits for a store does end, and a request that was made must be recorded. A record
 * that is ours may wait for its turn for longer: 50,000 at 340/s took 147 s.
 */
const ABANDONED_AFTER_MS = 120_000;
const CLAIMS = { maxItems: 2_000, lingerMs: 2, maxInFlight: 2 };

interface Lease {
  /** When it was taken, or its request begun, by `outageFreeMs`. */
  activeAtMs: number;
  /** By the monotonic clock; moved by each announcement that comes before it. */
  lapsesAtMs: number;
  isMade: boolean;
  isOurs: IsOurs;
  /** Called when it is released. */
  waiting: (() => void)[];
}

interface State extends LeaseDeps {
  leases: Map<string, Lease>;
  /** Attempt id → when it is to be announced (monotonic), earliest first. */
  unannounced: Map<string, number>;
  /** Attempt id → when it is to be announced again (monotonic), earliest first. */
  announced: Map<string, number>;
  /** Announced and released, and not withdrawn yet. */
  released: string[];
  /** Attempt id → the claim that is under way. Resolves to false when another process works on it. */
  claims: Map<string, Promise<boolean>>;
}

/**
 * Leases on attempts under way. When a partition changes hands while its former owner lives, or a
 * record has a copy, the second attempt waits for the first instead of being sent as well. Only
 * `takeWhenFree` asks Redis; without Redis it waits for nobody in another process.
 */
export function createAttemptLeases(deps: LeaseDeps): AttemptLeases {
  const { running, wait } = deps;
  const state: State = {
    ...deps,
    leases: new Map(),
    unannounced: new Map(),
    announced: new Map(),
    released: [],
    claims: new Map(),
  };
  const askRedis = createClaim(running);
  return {
    take: (attemptId, isOurs) => take(state, attemptId, { isOurs, isAnnounced: false }),
    isHeld: (attemptId) => state.leases.has(attemptId),
    async takeWhenFree(attemptId, isOurs) {
      for (;;) {
        if (state.isStopping()) throw new StoppedError('stopped while somebody had the attempt');
        const lease = state.leases.get(attemptId);
        if (lease && !isAbandoned(state, lease)) {
          const released = new AbortController();
          lease.waiting.push(() => {
            released.abort();
          });
          await wait(ABANDONED_AFTER_MS, released.signal);
        } else if (!(await claim(state, attemptId, askRedis))) await wait(CLAIMED_AGAIN_AFTER_MS);
        else if (state.leases.get(attemptId) === lease)
          return take(state, attemptId, { isOurs, isAnnounced: true });
      }
    },
    announceAll() {
      announce(state, takeDue(state.unannounced, Infinity));
    },
    tick() {
      tick(state);
    },
  };
}

interface Taking {
  isOurs: IsOurs;
  isAnnounced: boolean;
}

function take(state: State, attemptId: string, { isOurs, isAnnounced }: Taking): HeldLease {
  const { leases, unannounced, announced } = state;
  const nowMs = state.monotonicMs();
  endAbandoned(leases.get(attemptId), nowMs);
  const lease: Lease = {
    activeAtMs: state.outageFreeMs(),
    lapsesAtMs: nowMs + (isAnnounced ? LASTS_MS : LASTS_UNANNOUNCED_MS),
    isMade: false,
    isOurs,
    waiting: [],
  };
  leases.set(attemptId, lease);
  if (isAnnounced) announced.set(attemptId, nowMs + RENEWED_AFTER_MS);
  else unannounced.set(attemptId, nowMs + ANNOUNCED_AFTER_MS);
  return {
    markMade() {
      lease.isMade = true;
    },
    begin() {
      if (hasLapsed(state, lease)) return false;
      lease.activeAtMs = state.outageFreeMs();
      return true;
    },
    release() {
      release(state, attemptId, lease);
    },
  };
}

/** Whoever comes back to it claims the attempt again, instead of making it beside the one who has taken it over. */
function endAbandoned(lease: Lease | undefined, nowMs: number): void {
  if (lease) lease.lapsesAtMs = nowMs;
}

function release(state: State, attemptId: string, lease: Lease): void {
  const { leases, unannounced, announced, released } = state;
  state.onReleased(attemptId);
  for (const wake of lease.waiting) wake();
  // An abandoned lease may have been taken over.
  if (leases.get(attemptId) !== lease) return;
  leases.delete(attemptId);
  unannounced.delete(attemptId);
  // What Redis has of a lapsed lease may be another's by now.
  if (announced.delete(attemptId) && !hasLapsed(state, lease)) released.push(attemptId);
}

function hasLapsed({ monotonicMs }: State, { lapsesAtMs }: Lease): boolean {
  return monotonicMs() >= lapsesAtMs;
}

function isAbandoned({ outageFreeMs }: State, { activeAtMs, isMade, isOurs }: Lease): boolean {
  return !isMade && !isOurs() && outageFreeMs() - activeAtMs >= ABANDONED_AFTER_MS;
}

function tick(state: State): void {
  const { unannounced, announced } = state;
  withdrawReleased(state);
  const nowMs = state.monotonicMs();
  announce(state, [...takeDue(unannounced, nowMs), ...takeDue(announced, nowMs)]);
}

function announce(state: State, ids: readonly string[]): void {
  const { running, leases, announced } = state;
  const nowMs = state.monotonicMs();
  const alive: string[] = [];
  for (const id of ids) {
    const lease = leases.get(id);
    if (!lease || isAbandoned(state, lease) || hasLapsed(state, lease)) continue;
    lease.lapsesAtMs = nowMs + LASTS_MS;
    announced.set(id, nowMs + RENEWED_AFTER_MS);
    alive.push(id);
  }
  if (alive.length > 0) running.announce(alive, LEASE_MS);
}

/**
 * The announcement of an attempt whose lease was taken again meanwhile stays. One that is being claimed
 * again waits for the answer: Redis grants a process what it has announced itself, and the withdrawal
 * would end that.
 */
function withdrawReleased({ running, announced, claims, released }: State): void {
  const ended = released.splice(0).filter((id) => !announced.has(id));
  const isClaimed = (id: string): boolean => claims.has(id);
  released.push(...ended.filter(isClaimed));
  const over = ended.filter((id) => !isClaimed(id));
  if (over.length > 0) running.withdraw(over);
}

/** Claims of one attempt are one claim. */
function claim(
  { claims }: State,
  attemptId: string,
  askRedis: (attemptId: string) => Promise<boolean>,
): Promise<boolean> {
  const underWay = claims.get(attemptId);
  if (underWay) return underWay;
  const claimed = askRedis(attemptId).finally(() => claims.delete(attemptId));
  claims.set(attemptId, claimed);
  return claimed;
}

/** Removes the ids whose time has come, and returns them. */
function takeDue(times: Map<string, number>, nowMs: number): string[] {
  const due: string[] = [];
  for (const [id, atMs] of times) {
    if (atMs > nowMs) break;
    due.push(id);
  }
  for (const id of due) times.delete(id);
  return due;
}

/** Claims of the same moment are sent together; without Redis all of them are granted. */
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

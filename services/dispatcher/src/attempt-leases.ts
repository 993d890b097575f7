import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import type { IsOurs } from '@posthorn/platform/kafka/record-log.ts';
import type { RunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';

/** The right to work on an attempt alone. */
export interface HeldLease {
  /** To be called when the request was made, with the queue in which its outcome waits to be recorded. */
  markMade: (queue: OutcomeQueue) => void;
  /**
   * To be called right before the request. Returns false when the lease may have ended and the attempt have been made
   * meanwhile: this process was suspended, or its work hung and the lease was abandoned. The attempt is claimed again
   * then; one whose partition has gone is left to whoever reads it next.
   */
  begin: () => boolean;
  release: () => void;
}

export interface AttemptLeases {
  /** Takes the lease of an attempt that nobody else can be working on. `isOurs` is asked of its record. */
  take: (attemptId: string, isOurs: IsOurs) => HeldLease;
  /**
   * Takes the lease of an attempt that somebody may be working on, in this process or another, once
   * nobody does. Rejects with StoppedError when the process stops first, or the partition has gone.
   */
  takeWhenFree: (attemptId: string, isOurs: IsOurs) => Promise<HeldLease>;
  /** True while this process works on the attempt, or waits to. */
  isHeld: (attemptId: string) => boolean;
  /** Announces all leases at once, because a former owner is asked for them next. */
  announceAll: () => void;
  /** Announces in Redis the leases that last, and withdraws the released ones. To be called every 50 ms. */
  tick: () => void;
}

/** Most attempts end before this, and cost Redis nothing. */
const ANNOUNCED_AFTER_MS = 50;
/** An attempt that lasts is announced by then: its age, and the time to the next tick. */
export const ANNOUNCED_WITHIN_MS = 150;
/** How often a wait asks whether a lease in this process is abandoned. */
const ASKED_AGAIN_AFTER_MS = 5_000;
const CLAIMED_AGAIN_AFTER_MS = 250;
const CLAIMS = { maxItems: 2_000, lingerMs: 2, maxInFlight: 2 };

/**
 * Leases on attempts under way. When a partition changes hands while its former owner lives, or a
 * record has a copy, the second attempt waits for the first instead of being sent as well. Only
 * `takeWhenFree` asks Redis; without Redis it waits for nobody in another process.
 */
export function createAttemptLeases(deps: LeaseDeps): AttemptLeases {
  const { running } = deps;
  const state: LeaseState = {
    ...deps,
    leases: new Map(),
    unannounced: new Map(),
    announced: new Map(),
    released: [],
    claims: new Map(),
    waiting: new Map(),
    recorded: { delivery: NOTHING_RECORDED, resend: NOTHING_RECORDED },
  };
  const askRedis = createClaim(running);
  return {
    take: (attemptId, isOurs) => take(state, attemptId, { isOurs, isAnnounced: false }),
    isHeld: (attemptId) => state.leases.has(attemptId) || state.waiting.has(attemptId),
    async takeWhenFree(attemptId, isOurs) {
      countWaiting(state, attemptId, 1);
      try {
        return await takeWhenFree(state, attemptId, { isOurs, askRedis });
      } finally {
        countWaiting(state, attemptId, -1);
      }
    },
    announceAll() {
      announceAll(state);
    },
    tick() {
      announceDue(state);
    },
  };
}

interface Waiting {
  isOurs: IsOurs;
  askRedis: (attemptId: string) => Promise<boolean>;
}

async function takeWhenFree(
  state: LeaseState,
  attemptId: string,
  { isOurs, askRedis }: Waiting,
): Promise<HeldLease> {
  for (;;) {
    if (state.isStopping()) throw new StoppedError('stopped while somebody had the attempt');
    if (!isOurs()) throw new StoppedError('the partition has gone while somebody had the attempt');
    const lease = state.leases.get(attemptId);
    if (lease && !isAbandoned(state, lease)) {
      lease.released ??= new AbortController();
      await state.wait(ASKED_AGAIN_AFTER_MS, lease.released.signal);
    } else if (!(await claim(state, attemptId, askRedis))) {
      await state.wait(CLAIMED_AGAIN_AFTER_MS);
    } else if (state.leases.get(attemptId) === lease) {
      return take(state, attemptId, { isOurs, isAnnounced: true });
    }
  }
}

function countWaiting({ waiting }: LeaseState, attemptId: string, change: 1 | -1): void {
  const count = (waiting.get(attemptId) ?? 0) + change;
  if (count === 0) waiting.delete(attemptId);
  else waiting.set(attemptId, count);
}

interface Taking {
  isOurs: IsOurs;
  isAnnounced: boolean;
}

function take(state: LeaseState, attemptId: string, { isOurs, isAnnounced }: Taking): HeldLease {
  const { leases, unannounced, announced } = state;
  const nowMs = state.monotonicMs();
  endAbandoned(leases.get(attemptId), nowMs);
  const lease: Lease = {
    activeAtMs: state.outageFreeMs(),
    lapsesAtMs: nowMs + (isAnnounced ? LASTS_MS : LASTS_UNANNOUNCED_MS),
    madeIn: null,
    isGivenUp: false,
    isOurs,
    released: null,
  };
  leases.set(attemptId, lease);
  if (isAnnounced) announced.set(attemptId, nowMs + RENEWED_AFTER_MS);
  else unannounced.set(attemptId, nowMs + ANNOUNCED_AFTER_MS);
  return {
    markMade(queue) {
      lease.activeAtMs = state.outageFreeMs();
      lease.madeIn = queue;
    },
    begin() {
      if (hasLapsed(state, lease) || isAbandoned(state, lease)) return false;
      lease.activeAtMs = state.outageFreeMs();
      return true;
    },
    release() {
      release(state, attemptId, lease);
    },
  };
}

/** Whoever comes back to it makes no request beside the one who has taken it over. */
function endAbandoned(lease: Lease | undefined, nowMs: number): void {
  if (lease) lease.lapsesAtMs = nowMs;
}

function release(state: LeaseState, attemptId: string, lease: Lease): void {
  const { leases, unannounced, announced, released } = state;
  state.onReleased(attemptId);
  lease.released?.abort();
  if (lease.madeIn) noteRecorded(state, lease.madeIn, lease.activeAtMs);
  // An abandoned lease may have been taken over.
  if (leases.get(attemptId) !== lease) return;
  leases.delete(attemptId);
  unannounced.delete(attemptId);
  // What Redis has of a lapsed lease may be another's by now.
  if (announced.delete(attemptId) && !hasLapsed(state, lease)) released.push(attemptId);
}

function noteRecorded(state: LeaseState, queue: OutcomeQueue, activeAtMs: number): void {
  const madeAtMs = Math.max(state.recorded[queue].madeAtMs, activeAtMs);
  state.recorded[queue] = { madeAtMs, atMs: state.outageFreeMs() };
}

/** Claims of one attempt are one claim. */
function claim(
  { claims }: LeaseState,
  attemptId: string,
  askRedis: (attemptId: string) => Promise<boolean>,
): Promise<boolean> {
  const underWay = claims.get(attemptId);
  if (underWay) return underWay;
  const claimed = askRedis(attemptId).finally(() => claims.delete(attemptId));
  claims.set(attemptId, claimed);
  return claimed;
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

interface LeaseDeps {
  running: RunningAttempts;
  onReleased: (attemptId: string) => void;
  monotonicMs: () => number;
  /** Counts the milliseconds in which the stores answer (outage-free-clock.ts). */
  outageFreeMs: () => number;
  /** Resolves after this time, when the process stops, or when `signal` is aborted. */
  wait: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  isStopping: () => boolean;
}

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
/**
 * Work on a record that is not ours any more counts as hung when it takes longer while the stores respond: work that
 * waits for a store does end. A record that is ours may wait for its turn for longer: 50,000 at 340/s took 147 s. It is
 * less than the time after which stall-watch.ts replaces a consumer.
 */
const ABANDONED_AFTER_MS = 90_000;
/** Where outcomes wait until they are recorded. */
export type OutcomeQueue = 'delivery' | 'resend';

/** A queue records outcomes in the order in which they came, but for the two batches that are written at once. */
const RECORDED_TOGETHER_MS = 30_000;

interface Lease {
  /** When it was taken, or its request begun, or its response read, by `outageFreeMs`. */
  activeAtMs: number;
  /** By the monotonic clock; moved by each announcement that comes before it. */
  lapsesAtMs: number;
  /** Where the outcome of its request waits; null before the request was made. */
  madeIn: OutcomeQueue | null;
  /** True once it is announced no more because its work hung. */
  isGivenUp: boolean;
  isOurs: IsOurs;
  /** Aborted when it is released; null while nobody waits for that. */
  released: AbortController | null;
}

interface LeaseState extends LeaseDeps {
  leases: Map<string, Lease>;
  /** Attempt id → when it is to be announced (monotonic), earliest first. */
  unannounced: Map<string, number>;
  /** Attempt id → when it is to be announced again (monotonic), earliest first. */
  announced: Map<string, number>;
  /** Announced and released, and not withdrawn yet. */
  released: string[];
  /** Attempt id → the claim that is under way. Resolves to false when another process works on it. */
  claims: Map<string, Promise<boolean>>;
  /** Attempt id → how many wait for its lease. */
  waiting: Map<string, number>;
  recorded: Record<OutcomeQueue, LastRecorded>;
}

/** Of the attempts that were made and released, by `outageFreeMs`. */
interface LastRecorded {
  /** When the one that was made last was made; -Infinity before any was released. */
  madeAtMs: number;
  /** When the last one was released. */
  atMs: number;
}

const NOTHING_RECORDED: LastRecorded = { madeAtMs: -Infinity, atMs: -Infinity };

/** True when others may have the attempt: this process was suspended for too long, or the lease was taken over. */
function hasLapsed({ monotonicMs }: LeaseState, { lapsesAtMs }: Lease): boolean {
  return monotonicMs() >= lapsesAtMs;
}

/** True when its work has hung, and whoever reads the record next may take it over. */
function isAbandoned(state: LeaseState, lease: Lease): boolean {
  if (lease.isGivenUp) return true;
  const ageMs = state.outageFreeMs() - lease.activeAtMs;
  if (lease.isOurs() || ageMs < ABANDONED_AFTER_MS) return false;
  return !lease.madeIn || !isBeingRecorded(state, lease.activeAtMs, state.recorded[lease.madeIn]);
}

/** False when later outcomes were recorded, or none was for as long as work may take: a slow store records in turn. */
function isBeingRecorded(
  { outageFreeMs }: LeaseState,
  activeAtMs: number,
  recorded: LastRecorded,
): boolean {
  const isOvertaken = recorded.madeAtMs >= activeAtMs + RECORDED_TOGETHER_MS;
  return !isOvertaken && outageFreeMs() - recorded.atMs < ABANDONED_AFTER_MS;
}

/** Withdraws the released leases, and announces those that last. */
function announceDue(state: LeaseState): void {
  const { unannounced, announced } = state;
  withdrawReleased(state);
  const nowMs = state.monotonicMs();
  announce(state, [...takeDue(unannounced, nowMs), ...takeDue(announced, nowMs)]);
}

/** Announces those that were not yet. */
function announceAll(state: LeaseState): void {
  announce(state, takeDue(state.unannounced, Infinity));
}

function announce(state: LeaseState, ids: readonly string[]): void {
  const { running, leases, announced } = state;
  const nowMs = state.monotonicMs();
  const alive: string[] = [];
  for (const id of ids) {
    const lease = leases.get(id);
    if (!lease || hasLapsed(state, lease)) continue;
    lease.isGivenUp = isAbandoned(state, lease);
    if (lease.isGivenUp) continue;
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
function withdrawReleased({ running, announced, claims, released }: LeaseState): void {
  const ended = released.splice(0).filter((id) => !announced.has(id));
  const isClaimed = (id: string): boolean => claims.has(id);
  released.push(...ended.filter(isClaimed));
  const over = ended.filter((id) => !isClaimed(id));
  if (over.length > 0) running.withdraw(over);
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

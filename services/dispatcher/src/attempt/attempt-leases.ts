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
   * meanwhile: this process was frozen, or its work hung and the lease was abandoned. The attempt is claimed again
   * then; one whose partition has gone is left to whoever reads it next.
   */
  begin: () => boolean;
  release: () => void;
}

/** Where outcomes wait until they are recorded. */
export type OutcomeQueue = 'delivery' | 'resend';

interface LeaseDeps {
  running: RunningAttempts;
  monotonicMs: () => number;
  /** Counts the milliseconds in which the stores answer (`createOutageFreeClock`). */
  outageFreeMs: () => number;
  /** Resolves after this time, when the process stops, or when `signal` is aborted. */
  wait: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  isStopping: () => boolean;
}

/** Most attempts are recorded before this (SETTLE_BATCH waits for 100 ms), and cost Redis nothing. */
const ANNOUNCED_AFTER_MS = 120;
/** An attempt that lasts is announced by then: its age, and the time to the next tick. */
export const ANNOUNCED_WITHIN_MS = 250;
/**
 * A rebalance takes a second or two. What is begun meanwhile, of records that were read before, is announced with the next tick:
 * the next owner asks 250 ms after its assignment, when a younger attempt would not be announced yet.
 */
const HANDING_OVER_MS = 15_000;
/** How often a wait checks whether a lease in this process is abandoned. */
const CHECKED_AGAIN_AFTER_MS = 5_000;
const CLAIMED_AGAIN_AFTER_MS = 250;
const CLAIMS = { maxItems: 2_000, lingerMs: 2, maxInFlight: 2 };

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
 * After this time with healthy stores, work on a record of a lost partition counts as hung: work that waits for a store
 * does end. A record of an owned partition may wait for its endpoint for longer: 50,000 at 340/s took 147 s. It is
 * less than the time after which stall-watch.ts replaces a consumer.
 */
const ABANDONED_AFTER_MS = 90_000;
/** A queue records outcomes in the order in which they came, but for the two batches that are written at once. */
const RECORDED_TOGETHER_MS = 30_000;
/**
 * A record may be stored twice: a producer got no response and sent it again, or the former owner of
 * its partition released it too. The copy comes within seconds; this covers 33 s at 1,500 attempts/s.
 */
const REMEMBERED_IDS = 50_000;

interface Lease {
  attemptId: string;
  /** When it was taken, or its request begun, or its response read, by `outageFreeMs`. */
  activeAtMs: number;
  /** By the monotonic clock; moved by each announcement that comes before it. */
  lapsesAtMs: number;
  /** Where the outcome of its request waits; null before the request was made. */
  madeIn: OutcomeQueue | null;
  /** True once it is announced no longer because its work hung. */
  isGivenUp: boolean;
  isOurs: IsOurs;
  /** Aborted when it is released; null while nobody waits for that. */
  released: AbortController | null;
}

/** The attempts that were made and released, by `outageFreeMs`. */
interface LastRecorded {
  /** When the one that was made last was made; -Infinity before any was released. */
  madeAtMs: number;
  /** When the last one was released. */
  atMs: number;
}

const NOTHING_RECORDED: LastRecorded = { madeAtMs: -Infinity, atMs: -Infinity };

/**
 * Leases on attempts under way. When a partition changes hands while its former owner lives, or a
 * record has a copy, the second attempt waits for the first instead of being sent as well. Only
 * `takeWhenFree` reads from Redis; without Redis it waits for nobody in another process.
 */
export class AttemptLeases {
  readonly #deps: LeaseDeps;
  readonly #leases = new Map<string, Lease>();
  /** Attempt id → when it is to be announced (monotonic), earliest first. */
  readonly #unannounced = new Map<string, number>();
  /** Attempt id → when it is to be announced again (monotonic), earliest first. */
  readonly #announced = new Map<string, number>();
  /** By the monotonic clock: until then leases are announced as soon as they are taken. */
  #handingOverUntilMs = -Infinity;
  /** Announced and released, and not withdrawn yet. */
  readonly #released: string[] = [];
  /** Attempt id → the claim that is under way. Resolves to false when another process works on it. */
  readonly #claims = new Map<string, Promise<boolean>>();
  /** Attempt id → how many wait for its lease. */
  readonly #waiting = new Map<string, number>();
  readonly #recorded: Record<OutcomeQueue, LastRecorded> = {
    delivery: NOTHING_RECORDED,
    resend: NOTHING_RECORDED,
  };
  /** The attempts that this process has worked on. */
  readonly #recentIds = createRecentIds(REMEMBERED_IDS);
  readonly #claimInRedis: (attemptId: string) => Promise<boolean>;

  constructor(deps: LeaseDeps) {
    this.#deps = deps;
    this.#claimInRedis = createClaim(deps.running);
  }

  /** Takes the lease of an attempt that nobody else can be working on. `isOurs` is that of its record. */
  take(attemptId: string, isOurs: IsOurs): HeldLease {
    return this.#take(attemptId, isOurs, false);
  }

  /** True while this process works on the attempt, or waits to, and for a while after that. */
  isKnown(attemptId: string): boolean {
    const isHeld = this.#leases.has(attemptId) || this.#waiting.has(attemptId);
    return isHeld || this.#recentIds.has(attemptId);
  }

  /**
   * Takes the lease of an attempt that somebody may be working on, in this process or another, once
   * nobody does. Rejects with StoppedError when the process stops first, or the partition has gone.
   */
  async takeWhenFree(attemptId: string, isOurs: IsOurs): Promise<HeldLease> {
    this.#countWaiting(attemptId, 1);
    try {
      return await this.#waitAndTake(attemptId, isOurs);
    } finally {
      this.#countWaiting(attemptId, -1);
    }
  }

  /** Announces all leases at once, and those that are taken next, because a former owner is asked for them next. */
  announceAll(): void {
    this.#handingOverUntilMs = this.#deps.monotonicMs() + HANDING_OVER_MS;
    this.#announce(takeDue(this.#unannounced, Infinity));
  }

  /** Withdraws the released leases in Redis, and announces those that last. To be called every 100 ms. */
  tick(): void {
    this.#withdrawReleased();
    const nowMs = this.#deps.monotonicMs();
    this.#announce([...takeDue(this.#unannounced, nowMs), ...takeDue(this.#announced, nowMs)]);
  }

  async #waitAndTake(attemptId: string, isOurs: IsOurs): Promise<HeldLease> {
    const { isStopping, wait } = this.#deps;
    for (;;) {
      if (isStopping()) throw new StoppedError('stopped while somebody had the attempt');
      if (!isOurs()) {
        throw new StoppedError('the partition has gone while somebody had the attempt');
      }
      const lease = this.#leases.get(attemptId);
      if (lease && !this.#isAbandoned(lease)) {
        lease.released ??= new AbortController();
        await wait(CHECKED_AGAIN_AFTER_MS, lease.released.signal);
      } else if (!(await this.#claim(attemptId))) {
        await wait(CLAIMED_AGAIN_AFTER_MS);
      } else if (this.#leases.get(attemptId) === lease) {
        return this.#take(attemptId, isOurs, true);
      }
    }
  }

  #countWaiting(attemptId: string, change: 1 | -1): void {
    const count = (this.#waiting.get(attemptId) ?? 0) + change;
    if (count === 0) this.#waiting.delete(attemptId);
    else this.#waiting.set(attemptId, count);
  }

  /** Claims of one attempt are one claim. */
  #claim(attemptId: string): Promise<boolean> {
    const underWay = this.#claims.get(attemptId);
    if (underWay) return underWay;
    const claimed = this.#claimInRedis(attemptId).finally(() => this.#claims.delete(attemptId));
    this.#claims.set(attemptId, claimed);
    return claimed;
  }

  #take(attemptId: string, isOurs: IsOurs, isAnnounced: boolean): HeldLease {
    const { monotonicMs, outageFreeMs } = this.#deps;
    const nowMs = monotonicMs();
    const abandoned = this.#leases.get(attemptId);
    // Whoever comes back to it makes no request beside the one who takes it over now.
    if (abandoned) abandoned.lapsesAtMs = nowMs;
    const lease: Lease = {
      attemptId,
      activeAtMs: outageFreeMs(),
      lapsesAtMs: nowMs + (isAnnounced ? LASTS_MS : LASTS_UNANNOUNCED_MS),
      madeIn: null,
      isGivenUp: false,
      isOurs,
      released: null,
    };
    this.#leases.set(attemptId, lease);
    if (isAnnounced) this.#announced.set(attemptId, nowMs + RENEWED_AFTER_MS);
    else this.#unannounced.set(attemptId, this.#announceAtMs(nowMs));
    return {
      markMade(queue) {
        lease.activeAtMs = outageFreeMs();
        lease.madeIn = queue;
      },
      begin: () => {
        if (this.#hasLapsed(lease) || this.#isAbandoned(lease)) return false;
        lease.activeAtMs = outageFreeMs();
        return true;
      },
      release: () => {
        this.#release(lease);
      },
    };
  }

  #announceAtMs(nowMs: number): number {
    return nowMs < this.#handingOverUntilMs ? nowMs : nowMs + ANNOUNCED_AFTER_MS;
  }

  #release(lease: Lease): void {
    const { attemptId, madeIn, activeAtMs } = lease;
    this.#recentIds.add(attemptId);
    lease.released?.abort();
    if (madeIn) {
      const madeAtMs = Math.max(this.#recorded[madeIn].madeAtMs, activeAtMs);
      this.#recorded[madeIn] = { madeAtMs, atMs: this.#deps.outageFreeMs() };
    }
    // An abandoned lease may have been taken over.
    if (this.#leases.get(attemptId) !== lease) return;
    this.#leases.delete(attemptId);
    this.#unannounced.delete(attemptId);
    // The announcement of a lapsed lease in Redis may be another's by now.
    if (this.#announced.delete(attemptId) && !this.#hasLapsed(lease)) {
      this.#released.push(attemptId);
    }
  }

  /** True when others may have the attempt: this process was frozen for too long, or the lease was taken over. */
  #hasLapsed({ lapsesAtMs }: Lease): boolean {
    return this.#deps.monotonicMs() >= lapsesAtMs;
  }

  /** True when its work has hung, and whoever reads the record next may take it over. */
  #isAbandoned({ isGivenUp, isOurs, activeAtMs, madeIn }: Lease): boolean {
    if (isGivenUp) return true;
    const nowMs = this.#deps.outageFreeMs();
    if (isOurs() || nowMs - activeAtMs < ABANDONED_AFTER_MS) return false;
    return !madeIn || !isBeingRecorded(activeAtMs, this.#recorded[madeIn], nowMs);
  }

  #announce(ids: readonly string[]): void {
    const nowMs = this.#deps.monotonicMs();
    const alive: string[] = [];
    for (const id of ids) {
      const lease = this.#leases.get(id);
      if (!lease || this.#hasLapsed(lease)) continue;
      lease.isGivenUp = this.#isAbandoned(lease);
      if (lease.isGivenUp) continue;
      lease.lapsesAtMs = nowMs + LASTS_MS;
      this.#announced.set(id, nowMs + RENEWED_AFTER_MS);
      alive.push(id);
    }
    if (alive.length > 0) this.#deps.running.announce(alive, LEASE_MS);
  }

  /**
   * The announcement of an attempt whose lease was taken again meanwhile stays. One that is being claimed
   * again waits for the result: Redis grants a process what it has announced itself, and the withdrawal
   * would end that.
   */
  #withdrawReleased(): void {
    const ended = this.#released.splice(0).filter((id) => !this.#announced.has(id));
    this.#released.push(...ended.filter((id) => this.#claims.has(id)));
    const over = ended.filter((id) => !this.#claims.has(id));
    if (over.length > 0) this.#deps.running.withdraw(over);
  }
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

/** False when later outcomes were recorded, or none was for as long as work may take: a slow store records in order. */
function isBeingRecorded(
  activeAtMs: number,
  { madeAtMs, atMs }: LastRecorded,
  nowMs: number,
): boolean {
  const isOvertaken = madeAtMs >= activeAtMs + RECORDED_TOGETHER_MS;
  return !isOvertaken && nowMs - atMs < ABANDONED_AFTER_MS;
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

interface RecentIds {
  add: (id: string) => void;
  has: (id: string) => boolean;
}

/** Remembers at least the newest `count` ids, and at most twice as many. */
export function createRecentIds(count: number): RecentIds {
  let newer = new Set<string>();
  let older = new Set<string>();
  return {
    add(id) {
      if (newer.size >= count) {
        older = newer;
        newer = new Set();
      }
      newer.add(id);
    },
    has: (id) => newer.has(id) || older.has(id),
  };
}

import type { IsOurs } from '@posthorn/platform/kafka/record-log.ts';
import type { RunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';

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

/** Attempts of a process that died are waited for this long at most; a living process renews in time. */
export const LEASE_MS = 10_000;
export const RENEWED_AFTER_MS = 4_000;
/** Less than LEASE_MS by the time that the announcement takes to Redis. */
export const LASTS_MS = 9_000;
/**
 * Others know nothing of a lease that was not announced, but get the partition of a process that is silent only later
 * than this (group-timing.ts).
 */
export const LASTS_UNANNOUNCED_MS = 4_000;
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

export interface Lease {
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

export interface LeaseState extends LeaseDeps {
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
export interface LastRecorded {
  /** When the one that was made last was made; -Infinity before any was released. */
  madeAtMs: number;
  /** When the last one was released. */
  atMs: number;
}

export const NOTHING_RECORDED: LastRecorded = { madeAtMs: -Infinity, atMs: -Infinity };

/** True when others may have the attempt: this process was suspended for too long, or the lease was taken over. */
export function hasLapsed({ monotonicMs }: LeaseState, { lapsesAtMs }: Lease): boolean {
  return monotonicMs() >= lapsesAtMs;
}

/** True when its work has hung, and whoever reads the record next may take it over. */
export function isAbandoned(state: LeaseState, lease: Lease): boolean {
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

import {
  createFifo,
  createPlaceOrder,
  type Fifo,
  type PlaceOrder,
} from '@posthorn/platform/async/fair-queue.ts';
import type { CircuitReport } from './circuit.ts';
import type { LimitBounds } from './concurrency-limit.ts';
import {
  asksForPause,
  concurrencyOf,
  createEndpoint,
  type Endpoint,
  isSlow,
  paceOf,
  resetForNewUrl,
  runningOf,
  spacingMs,
  untilPaceAllowsMs,
} from './endpoint.ts';
import {
  type Admission,
  type AttemptReport,
  type AttemptView,
  type Candidate,
  type CircuitView,
  type EndpointView,
  fastQueuesInOrder,
  type QueueKind,
} from './gate.ts';
import { hasReservationsAtHost, hostKeyOf, hostSpacingMs, untilHostAllowsMs } from './host-pace.ts';
import { recentSuccesses } from './learned-rate.ts';

/*
 * An endpoint with its queues, and the pure questions about it. queues.ts, attempt-slots.ts and remembered-endpoints.ts change it.
 */

/** An endpoint with its queues. */
export interface QueuedEndpoint extends Endpoint {
  waiting: Record<QueueKind, Fifo<WaitingAttempt>>;
  /** Cancels the timer that wakes its queues; null when there is none. */
  cancelWake: (() => void) | null;
  /** When that timer fires, by the monotonic clock. */
  wakeAtMs: number;
  /** Of its URL, see `hostKeyOf`. */
  hostKey: string;
  /** Counts the choices between its first attempts and its retries. */
  choices: number;
}

interface WaitingAttempt {
  candidate: Candidate;
  /** Monotonic, milliseconds. */
  sinceMs: number;
  admit: (admission: Admission) => void;
}

/** The first and retry queues share one pool of slots; the slow lane has its own. */
export type Pool = 'fast' | 'slow';

export const POOLS: readonly Pool[] = ['fast', 'slow'];
export const QUEUES: readonly QueueKind[] = ['first', 'retry', 'slow'];
const SLOW_ONLY: readonly QueueKind[] = ['slow'];

export function poolOf(queue: QueueKind): Pool {
  return queue === 'slow' ? 'slow' : 'fast';
}

export function ordersOfPools(): Readonly<Record<Pool, PlaceOrder<QueuedEndpoint>>> {
  return { fast: createPlaceOrder(), slow: createPlaceOrder() };
}

export function createQueuedEndpoint(candidate: Candidate, bounds: LimitBounds): QueuedEndpoint {
  return {
    ...createEndpoint(candidate, bounds),
    waiting: { first: createFifo(), retry: createFifo(), slow: createFifo() },
    cancelWake: null,
    wakeAtMs: Infinity,
    hostKey: hostKeyOf(candidate.companyId, candidate.url),
    choices: 0,
  };
}

/** Forgets everything learned at its former URL. */
export function moveToUrl(endpoint: QueuedEndpoint, url: string, bounds: LimitBounds): void {
  resetForNewUrl(endpoint, url, bounds);
  endpoint.hostKey = hostKeyOf(endpoint.companyId, url);
}

export function waitingOf({ waiting }: QueuedEndpoint): number {
  return waiting.first.size() + waiting.retry.size() + waiting.slow.size();
}

/** True when the next slot of this pool is a choice between its first attempts and its retries. */
export function hasChoice({ waiting }: QueuedEndpoint, pool: Pool): boolean {
  return pool === 'fast' && waiting.first.size() > 0 && waiting.retry.size() > 0;
}

export function queuesInOrder({ choices }: QueuedEndpoint, pool: Pool): readonly QueueKind[] {
  return pool === 'slow' ? SLOW_ONLY : fastQueuesInOrder(choices);
}

/** An idle endpoint is remembered for this long. */
const KEPT_IDLE_MS = 60_000;

/** True when it has been idle for a minute, and nothing about it has to be kept. */
export function isForgettable(endpoint: QueuedEndpoint, nowMs: number): boolean {
  const isRecent = endpoint.lastEndMs + KEPT_IDLE_MS > nowMs;
  return !isRecent && !isSlow(endpoint, nowMs) && isIdleWithoutLimit(endpoint, nowMs);
}

/** True when no attempt is under way or waits. */
export function isIdle(endpoint: QueuedEndpoint): boolean {
  return runningOf(endpoint) + waitingOf(endpoint) === 0;
}

/** True when it is idle, and neither a pause nor a pace has to be kept. */
export function isIdleWithoutLimit(endpoint: QueuedEndpoint, nowMs: number): boolean {
  return isIdle(endpoint) && Math.max(endpoint.pausedUntilMs, endpoint.nextPacedMs) <= nowMs;
}

export interface QueuePosition {
  /** How many attempts of its queue are ahead of it. */
  ahead: number;
  /** False when it has just come and does not stand in a queue yet. */
  isWaiting: boolean;
}

/** Facts of this moment that the gate needs beside the attempt and its endpoint. */
interface Surroundings {
  /** Milliseconds since 1970. */
  nowMs: () => number;
  monotonicMs: () => number;
  circuitOf: (candidate: Candidate) => CircuitView;
  payloads: { hasRoom: (companyId: string) => boolean };
}

/** Returns the attempt and its endpoint as the gate sees them. */
export function viewsOf(
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  position: QueuePosition,
  surroundings: Surroundings,
): [AttemptView, EndpointView] {
  return [
    attemptViewOf(endpoint, candidate, position, surroundings),
    endpointViewOf(endpoint, candidate, surroundings),
  ];
}

/**
 * The company of the endpoint is the one that needs memory, as when a slot comes free. If the two named different
 * companies, the queues would choose the same endpoint again and again.
 */
function attemptViewOf(
  endpoint: QueuedEndpoint,
  { queue, reservedAtMs, hasPayload }: Candidate,
  { ahead, isWaiting }: QueuePosition,
  { nowMs, payloads }: Surroundings,
): AttemptView {
  return {
    queue,
    ahead,
    reservedInMs: reservedAtMs === null ? 0 : Math.max(0, reservedAtMs - nowMs()),
    precedesBooked: isWaiting || reservedAtMs !== null,
    lacksMemory: !hasPayload() && !payloads.hasRoom(endpoint.companyId),
  };
}

function endpointViewOf(
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  surroundings: Surroundings,
): EndpointView {
  const nowMs = surroundings.nowMs();
  const monotonicMs = surroundings.monotonicMs();
  const { running, waiting, pausedUntilMs, bookedUntilMs, host } = endpoint;
  const bookedMs = Math.max(bookedUntilMs, host?.bookedUntilMs ?? 0);
  return {
    circuit: surroundings.circuitOf(candidate),
    isSlow: isSlow(endpoint, monotonicMs),
    hasRateLimit: candidate.rateLimitPerSecond !== null,
    isPaced: hasReservationsAtHost(endpoint, nowMs) || paceOf(endpoint, monotonicMs) !== null,
    pauseInMs: Math.max(0, pausedUntilMs - monotonicMs),
    paceInMs: untilPaceAllowsMs(endpoint, monotonicMs),
    hostInMs: untilHostAllowsMs(endpoint, monotonicMs),
    bookedInMs: Math.max(0, bookedMs - nowMs),
    running,
    waitingSlow: waiting.slow.size(),
    wasSlowLast: endpoint.wasSlowLast,
    concurrency: concurrencyOf(endpoint),
    spacingMs: Math.max(spacingMs(endpoint, monotonicMs), hostSpacingMs(endpoint, monotonicMs)),
  };
}

export function circuitReportOf(
  { rate }: QueuedEndpoint,
  report: AttemptReport,
  nowMs: number,
): CircuitReport {
  return {
    outcome: report.outcome,
    asksForPause: asksForPause(report),
    recentSuccesses: recentSuccesses(rate, nowMs),
  };
}

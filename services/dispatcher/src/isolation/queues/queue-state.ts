import type { Trigger } from '@posthorn/domain/delivery.ts';
import type { Outcome } from '@posthorn/domain/outcome.ts';
import type { Permit } from '../circuits/circuits.ts';
import type { LimitBounds } from '../endpoint/concurrency-limit.ts';
import { createEndpoint, runningOf, type Endpoint } from '../endpoint/endpoint.ts';
import { createFifo, type Fifo } from '@posthorn/platform/async/fifo.ts';
import type { Reason } from '../gate/gate.ts';
import type { CircuitView, Lane } from '../gate/views.ts';
import { createPlaceOrder, type PlaceOrder } from '@posthorn/platform/async/place-order.ts';

/** A due attempt that asks for a place. */
export interface Candidate {
  webhookId: string;
  companyId: string;
  url: string;
  lane: Lane;
  trigger: Trigger;
  /** The webhook's own limit; null for none. */
  rateLimitPerSecond: number | null;
  /** When its turn is, in milliseconds since 1970; null when it was never deferred. */
  turnAtMs: number | null;
  /** Since when an open circuit has deferred it, in milliseconds since 1970; null when none has. */
  deferredSinceMs: number | null;
  /** Gives the payload up: the attempt waits as ids, and the payload is loaded again for its turn. */
  dropPayload: () => void;
}

/** Leave to make one attempt. */
export interface Turn {
  /**
   * The request begins: from here on the endpoint is judged by how long it takes. False when the
   * endpoint has asked for a pause meanwhile: the attempt has to enter again.
   */
  begin: () => boolean;
  /** When it is over; null when no request was made. */
  end: (result: Result | null) => Promise<void>;
}

/** What came of an attempt, as far as its endpoint is judged by it. */
export interface Result {
  outcome: Outcome;
  statusCode: number | null;
  /** How long it asked not to be sent anything, in milliseconds; null when it did not. */
  retryAfterMs: number | null;
}

/** What is to be done with an attempt. */
export type Admission =
  | { kind: 'turn'; turn: Turn }
  | { kind: 'slow lane' }
  /** `turnAtMs`: when it is to come again, in milliseconds since 1970. */
  | { kind: 'defer'; because: Reason; turnAtMs: number };

export interface QueueLimits {
  /** Attempts at once to one endpoint. */
  perEndpoint: LimitBounds;
  /** In all on the fast side, and in the slow lane. */
  fast: number;
  slow: number;
  /** Attempts that begin in one turn of the event loop. */
  beginsATurn: Record<Pool, number>;
}

export interface QueueDeps {
  limits: QueueLimits;
  /** How long an attempt may wait in memory for its endpoint now, in milliseconds. */
  maxWaitMs: () => number;
  /** True while this process has no time left, see watch-overload.ts. */
  isOverloaded: () => boolean;
  circuitOf: (candidate: Candidate) => CircuitView;
  /** Takes the permit of its circuit; to be told what came of the attempt, null when it was not made. */
  permit: (candidate: Candidate) => Permit;
  /** The endpoint asked for a pause of this many milliseconds. */
  onHold: (webhookId: string, forMs: number) => void;
  nowMs: () => number;
  /** For waits, pauses and rates. */
  monotonicMs: () => number;
  /** For durations: without the time in which this process stood still, see busy-clock.ts. */
  busyMs: () => number;
  /** Calls `act` in the next turn of the event loop. */
  inNextTurn: (act: () => void) => void;
  /** Calls `wake` after this time; answers what ends the timer. */
  wakeAfter: (ms: number, wake: () => void) => () => void;
}

/** The fast side and the slow lane have places of their own. */
export type Pool = 'fast' | 'slow';

export interface Waiting {
  candidate: Candidate;
  sinceMs: number;
  admit: (admission: Admission) => void;
}

/** An endpoint with its queues. */
export interface Known extends Endpoint {
  waiting: Record<Lane, Fifo<Waiting>>;
  /** Ends the timer that wakes its queues; null when there is none. */
  cancelWake: (() => void) | null;
  /** When it does, by `monotonicMs`. */
  wakeAtMs: number;
  /** Counts the choices between its first attempts and its retries. */
  picks: number;
}

/** A turn that was taken. */
export interface Running {
  endpoint: Known;
  lane: Lane;
  report: Permit;
  /** When its request began, by `busyMs`; null before. */
  begunMs: number | null;
  /** The same by `monotonicMs`. */
  begunAtMs: number;
  isOverdue: boolean;
  isOver: boolean;
}

export interface QueueState extends QueueDeps {
  endpoints: Map<string, Known>;
  /** Requests under way, in the order of their beginning. */
  requests: Set<Running>;
  taken: Record<Pool, number>;
  waiting: Record<Pool, number>;
  /** Attempts that may still begin in this turn of the event loop. */
  beginsLeft: Record<Pool, number>;
  isNextTurnAsked: boolean;
  order: Record<Pool, PlaceOrder<Known>>;
  /** Fast attempts that have lasted for too long. */
  stuck: number;
  isClosed: boolean;
  /** Pauses that former owners were asked for, until when (monotonic). */
  inheritedHolds: ReadonlyMap<string, number>;
}

/** Beyond this many an endpoint is forgotten as soon as it idles; its pause and its rate are kept. */
export const MAX_IDLE_ENDPOINTS = 10_000;
export const ENDPOINT_BYTES = 1_024;

export const LANES: readonly Lane[] = ['first', 'retry', 'slow'];

export function createQueueState(deps: QueueDeps): QueueState {
  return {
    ...deps,
    endpoints: new Map(),
    requests: new Set(),
    taken: { fast: 0, slow: 0 },
    waiting: { fast: 0, slow: 0 },
    beginsLeft: { ...deps.limits.beginsATurn },
    isNextTurnAsked: false,
    order: { fast: createPlaceOrder(), slow: createPlaceOrder() },
    stuck: 0,
    isClosed: false,
    inheritedHolds: new Map(),
  };
}

export function poolOf(lane: Lane): Pool {
  return lane === 'slow' ? 'slow' : 'fast';
}

export function findOrAdd(state: QueueState, candidate: Candidate): Known {
  const { webhookId, rateLimitPerSecond } = candidate;
  const known = state.endpoints.get(webhookId);
  const endpoint = known ?? createKnown(state, candidate);
  if (!known) state.endpoints.set(webhookId, endpoint);
  endpoint.rateLimitPerSecond = rateLimitPerSecond;
  return endpoint;
}

function createKnown({ limits, inheritedHolds }: QueueState, candidate: Candidate): Known {
  return {
    ...createEndpoint(candidate, limits.perEndpoint),
    holdUntilMs: inheritedHolds.get(candidate.webhookId) ?? 0,
    waiting: { first: createFifo(), retry: createFifo(), slow: createFifo() },
    cancelWake: null,
    wakeAtMs: Infinity,
    picks: 0,
  };
}

export function waitingOf({ waiting }: Known): number {
  return waiting.first.size() + waiting.retry.size() + waiting.slow.size();
}

export function isIdle(endpoint: Known): boolean {
  return runningOf(endpoint) + waitingOf(endpoint) === 0;
}

export function forgetIfMany({ endpoints, monotonicMs }: QueueState, endpoint: Known): void {
  if (endpoints.size <= MAX_IDLE_ENDPOINTS || !isIdle(endpoint)) return;
  if (Math.max(endpoint.holdUntilMs, endpoint.nextTurnMs) > monotonicMs()) return;
  endpoints.delete(endpoint.webhookId);
}

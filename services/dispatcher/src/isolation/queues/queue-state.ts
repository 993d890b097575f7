import { createFifo, type Fifo } from '@posthorn/platform/async/queues/fifo.ts';
import { createPlaceOrder, type PlaceOrder } from '@posthorn/platform/async/queues/place-order.ts';
import type { PayloadMemory, ReservedPayload } from '../../load/payload-memory.ts';
import type { ReportToCircuit } from '../circuits/circuits.ts';
import type { LimitBounds } from '../endpoint/concurrency-limit.ts';
import { createEndpoint, runningOf, resetForNewUrl, type Endpoint } from '../endpoint/endpoint.ts';
import { createHostPace, type HostPace, hostKeyOf } from '../endpoint/host-pace.ts';
import { inheritedUntilMs, type InheritedHolds } from '../endpoint/inherited-holds.ts';
import type { CircuitView, QueueKind } from '../gate/views.ts';
import type { Admission, Candidate } from './admission.ts';

export interface QueueLimits {
  /** Attempts at once to one endpoint. */
  perEndpoint: LimitBounds;
  /** Attempts per second of one company to one host; 0 for no limit. */
  perHostPerSecond: number;
  /** Places of this dispatcher for the first and retry queues of all endpoints. */
  fast: number;
  /** Places of this dispatcher for the slow lane. */
  slow: number;
  /** Attempts that start in one iteration of the event loop. */
  startsPerLoop: Record<Pool, number>;
}

export interface QueueDeps {
  limits: QueueLimits;
  /** How long an attempt may wait in memory for its endpoint now, in milliseconds. */
  maxWaitMs: () => number;
  /** True while this process has no CPU time left, see watch-overload.ts. */
  isOverloaded: () => boolean;
  /** An attempt has arrived: its circuit must be known before the gate is asked. */
  onArrival: (candidate: Candidate) => void;
  circuitOf: (candidate: Candidate) => CircuitView;
  /** For how long the company has been suspended, in milliseconds; null when it is not. */
  suspendedForMs: (companyId: string) => number | null;
  payloads: Pick<PayloadMemory, 'hasRoom' | 'reserve' | 'onFreed'>;
  /** Tells the circuit that the attempt begins. Call the returned function with its report, or null. */
  beginAttempt: (candidate: Candidate) => ReportToCircuit;
  /** The endpoint at this URL asked for a hold of this many milliseconds. */
  onHold: (webhookId: string, url: string, forMs: number) => void;
  nowMs: () => number;
  /** For waits, holds and paces. */
  monotonicMs: () => number;
  /** For durations: leaves out the time in which the event loop was blocked, see stall-free-clock.ts. */
  stallFreeMs: () => number;
  /** Calls `act` in the next iteration of the event loop. */
  inNextLoop: (act: () => void) => void;
  /** Calls `wake` after this time. Returns a function that cancels the timer. */
  wakeAfter: (ms: number, wake: () => void) => () => void;
}

/** The first and retry queues share one pool of places; the slow lane has its own. */
export type Pool = 'fast' | 'slow';

export interface WaitingAttempt {
  candidate: Candidate;
  /** Monotonic, milliseconds. */
  sinceMs: number;
  admit: (admission: Admission) => void;
}

/** An endpoint with its queues. */
export interface QueuedEndpoint extends Endpoint {
  /** Where its attempts go. What is known of it is known of this URL. */
  url: string;
  waiting: Record<QueueKind, Fifo<WaitingAttempt>>;
  /** Cancels the timer that wakes its queues; null when there is none. */
  cancelWake: (() => void) | null;
  /** When that timer fires, by `monotonicMs`. */
  wakeAtMs: number;
  /** Counts the choices between its first attempts and its retries. */
  choices: number;
}

/** An attempt that has a place. */
export interface RunningAttempt {
  endpoint: QueuedEndpoint;
  queue: QueueKind;
  reportToCircuit: ReportToCircuit;
  payload: ReservedPayload | null;
  /** When its request started, by `stallFreeMs`; null before. */
  startedStallFreeMs: number | null;
  /** The same by `monotonicMs`. */
  startedMs: number;
  isOverdue: boolean;
  /** It is counted in `slowFast`. */
  isSlowFast: boolean;
  /** The URL was changed while its request was under way, which says nothing of the new one. */
  isOfFormerUrl: boolean;
  isOver: boolean;
}

export interface QueueState extends QueueDeps {
  endpoints: Map<string, QueuedEndpoint>;
  /** Company id and host → the pace of its attempts to that host. Empty without a limit. */
  hosts: Map<string, HostPace>;
  /** Requests under way, in the order in which they started. */
  requests: Set<RunningAttempt>;
  taken: Record<Pool, number>;
  waiting: Record<Pool, number>;
  /** Attempts that may still start in this iteration of the event loop. */
  startsLeft: Record<Pool, number>;
  isNextLoopScheduled: boolean;
  order: Record<Pool, PlaceOrder<QueuedEndpoint>>;
  /** Endpoints of which an attempt could start if there were memory for its payload. */
  awaitingMemory: Record<Pool, PlaceOrder<QueuedEndpoint>>;
  /** Fast places of attempts that are overdue, or got them while their endpoint was slow. */
  slowFast: number;
  isClosed: boolean;
  inheritedHolds: InheritedHolds;
}

export const QUEUES: readonly QueueKind[] = ['first', 'retry', 'slow'];

export function createQueueState(deps: QueueDeps): QueueState {
  return {
    ...deps,
    endpoints: new Map(),
    hosts: new Map(),
    requests: new Set(),
    taken: { fast: 0, slow: 0 },
    waiting: { fast: 0, slow: 0 },
    startsLeft: { ...deps.limits.startsPerLoop },
    isNextLoopScheduled: false,
    order: { fast: createPlaceOrder(), slow: createPlaceOrder() },
    awaitingMemory: { fast: createPlaceOrder(), slow: createPlaceOrder() },
    slowFast: 0,
    isClosed: false,
    inheritedHolds: new Map(),
  };
}

export function poolOf(queue: QueueKind): Pool {
  return queue === 'slow' ? 'slow' : 'fast';
}

/** True when a place is free and this iteration of the event loop has starts left. */
export function mayStart({ taken, limits, startsLeft }: QueueState, pool: Pool): boolean {
  return taken[pool] < limits[pool] && startsLeft[pool] > 0;
}

/** Returns the endpoint of the candidate, added when it is new, with the rate limit and the host that it has now. */
export function updateEndpoint(state: QueueState, candidate: Candidate): QueuedEndpoint {
  const { webhookId, rateLimitPerSecond } = candidate;
  const known = state.endpoints.get(webhookId);
  const endpoint = known ?? createQueuedEndpoint(state, candidate);
  if (!known) state.endpoints.set(webhookId, endpoint);
  if (endpoint.url !== candidate.url) moveTo(state, endpoint, candidate.url);
  endpoint.rateLimitPerSecond = rateLimitPerSecond;
  endpoint.host = ensureHostPace(state, candidate);
  return endpoint;
}

/** A changed URL is another endpoint: the hold of the old one would keep it without attempts for an hour. */
function moveTo(state: QueueState, endpoint: QueuedEndpoint, url: string): void {
  endpoint.url = url;
  resetForNewUrl(endpoint, state.limits.perEndpoint);
  endpoint.holdUntilMs = inheritedUntilMs(state.inheritedHolds, endpoint);
  for (const attempt of state.requests) {
    if (attempt.endpoint !== endpoint) continue;
    attempt.isOfFormerUrl = true;
    attempt.isOverdue = false;
  }
}

/** Returns the pace of the candidate's company to its host, added when it is new; null without a limit. */
function ensureHostPace({ limits, hosts }: QueueState, candidate: Candidate): HostPace | null {
  if (limits.perHostPerSecond === 0) return null;
  const key = hostKeyOf(candidate.companyId, candidate.url);
  const known = hosts.get(key);
  if (known) return known;
  const host = createHostPace(limits.perHostPerSecond);
  hosts.set(key, host);
  return host;
}

function createQueuedEndpoint(
  { limits, inheritedHolds }: QueueState,
  candidate: Candidate,
): QueuedEndpoint {
  return {
    ...createEndpoint(candidate, limits.perEndpoint),
    url: candidate.url,
    holdUntilMs: inheritedUntilMs(inheritedHolds, candidate),
    waiting: { first: createFifo(), retry: createFifo(), slow: createFifo() },
    cancelWake: null,
    wakeAtMs: Infinity,
    choices: 0,
  };
}

export function waitingOf({ waiting }: QueuedEndpoint): number {
  return waiting.first.size() + waiting.retry.size() + waiting.slow.size();
}

export function isIdle(endpoint: QueuedEndpoint): boolean {
  return runningOf(endpoint) + waitingOf(endpoint) === 0;
}

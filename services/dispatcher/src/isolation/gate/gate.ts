import { suspensionDefersMs } from '@posthorn/domain/company/company.ts';
import {
  expectedWaitMs,
  isTurnNear,
  longestWaitMs,
  MIN_WAIT_MS,
  PROBE_WAIT_MS,
} from './how-long-attempts-wait.ts';
import type { AttemptView, CircuitView, DispatcherView, EndpointView } from './views.ts';
import { hasEndpointPlace } from './who-goes-next.ts';

/** Why an attempt cannot be made now. The closed set of labels of the metrics. */
export const REASONS = [
  // Its company is suspended.
  'suspended',
  // It was deferred, and its turn has not come.
  'turn',
  // The circuit of its endpoint is open, or a probe is under way.
  'circuit',
  // The endpoint takes a second or longer.
  'slow',
  // The endpoint asked for a hold (Retry-After).
  'hold',
  // The rate limit of the webhook, or the rate learned from its refusals.
  'pace',
  // The limit of attempts of its company to one host.
  'host',
  // All places of the endpoint are taken.
  'concurrency',
  // Payloads of attempts under way fill the memory that its company may use, and its own is not loaded.
  'memory',
  // All places of this dispatcher are taken, or other attempts of the queue are ahead.
  'busy',
] as const;

export type Reason = (typeof REASONS)[number];

export type Decision =
  | { kind: 'now' }
  /** `wakeInMs`: when time alone may change the decision; Infinity when only the end of an attempt can. */
  | { kind: 'wait'; because: Reason; wakeInMs: number }
  | { kind: 'slow_lane'; because: Reason }
  | { kind: 'defer'; because: Reason; inMs: number };

/**
 * The one place that decides whether an attempt is made now, waits in memory, or leaves. An attempt
 * always waits for what is in our own power (no free place in this process). It is moved or deferred
 * only because of what its endpoint cannot take, while its company is suspended, and for payloads.
 */
export function decide(
  attempt: AttemptView,
  endpoint: EndpointView,
  dispatcher: DispatcherView,
): Decision {
  return (
    bySuspension(attempt) ??
    byTurn(attempt, endpoint, dispatcher) ??
    byCircuit(endpoint.circuit) ??
    bySlowness(attempt, endpoint, dispatcher) ??
    byEndpoint(attempt, endpoint, dispatcher) ??
    byMemory(attempt, dispatcher) ??
    byDispatcher(attempt, dispatcher)
  );
}

function bySuspension({ suspendedForMs }: AttemptView): Decision | null {
  if (suspendedForMs === null) return null;
  return { kind: 'defer', because: 'suspended', inMs: suspensionDefersMs(suspendedForMs) };
}

/** Turns keep the pace of a backlog. At an endpoint that has none any more they are not waited for. */
function byTurn(
  { turnInMs }: AttemptView,
  { isPaced, holdInMs, circuit }: EndpointView,
  { maxWaitMs }: DispatcherView,
): Decision | null {
  const isKept = isPaced || holdInMs > 0 || circuit.kind !== 'closed';
  if (!isKept || isTurnNear(turnInMs, maxWaitMs)) return null;
  return { kind: 'defer', because: 'turn', inMs: turnInMs };
}

function byCircuit(circuit: CircuitView): Decision | null {
  if (circuit.kind === 'closed') return null;
  const waitMs = circuit.kind === 'probing' ? PROBE_WAIT_MS - circuit.sinceMs : 0;
  if (waitMs > 0) return { kind: 'wait', because: 'circuit', wakeInMs: waitMs };
  return { kind: 'defer', because: 'circuit', inMs: circuit.deferForMs };
}

/**
 * One attempt at a time stays outside the slow lane, to find out when the endpoint is fast again.
 * A webhook with a rate limit never uses the slow lane: while a consumer group rebalances, two
 * processes may serve the webhook, and could not keep one rate together. Its attempts stay outside
 * while slow endpoints may take more places there: one at a time would be 0.8/s with responses of
 * 1.2 s, whatever its limit is.
 */
function bySlowness(
  { queue, ahead }: AttemptView,
  { isSlow, hasRateLimit, running }: EndpointView,
  { maySlowUseFast }: DispatcherView,
): Decision | null {
  if (!isSlow || queue === 'slow') return null;
  const mayStay = hasRateLimit || running.first + running.retry + ahead === 0;
  if (mayStay && maySlowUseFast) return null;
  return hasRateLimit
    ? { kind: 'defer', because: 'slow', inMs: 0 }
    : { kind: 'slow_lane', because: 'slow' };
}

/** The attempt waits while the expected wait is short, and is deferred otherwise. */
function byEndpoint(
  attempt: AttemptView,
  endpoint: EndpointView,
  { maxWaitMs, isOverloaded }: DispatcherView,
): Decision | null {
  const bottleneck = bottleneckOf(attempt, endpoint);
  if (!bottleneck) return null;
  const { because, wakeInMs } = bottleneck;
  if (isOverloaded && because === 'concurrency') return { kind: 'wait', because, wakeInMs };
  const expectedMs = expectedWaitMs(attempt, endpoint);
  if (expectedMs > longestWaitMs(attempt, maxWaitMs))
    return { kind: 'defer', because, inMs: expectedMs };
  return { kind: 'wait', because, wakeInMs };
}

function bottleneckOf(
  { queue }: AttemptView,
  endpoint: EndpointView,
): { because: Reason; wakeInMs: number } | null {
  const { holdInMs, paceInMs, hostInMs } = endpoint;
  if (holdInMs > 0) return { because: 'hold', wakeInMs: holdInMs };
  if (!hasEndpointPlace(queue, endpoint)) return { because: 'concurrency', wakeInMs: Infinity };
  if (paceInMs > 0) return { because: 'pace', wakeInMs: paceInMs };
  if (hostInMs > 0) return { because: 'host', wakeInMs: hostInMs };
  return null;
}

/** Most of this memory is held by endpoints that are slow to answer, and they may be for long. */
const MEMORY_DEFERS_MS = 5_000;

/** An attempt that waits for memory holds no place, so that others are made meanwhile. */
function byMemory({ lacksMemory }: AttemptView, { maxWaitMs }: DispatcherView): Decision | null {
  if (!lacksMemory) return null;
  // Soon nothing more would be read.
  return maxWaitMs <= MIN_WAIT_MS
    ? { kind: 'defer', because: 'memory', inMs: MEMORY_DEFERS_MS }
    : { kind: 'wait', because: 'memory', wakeInMs: Infinity };
}

function byDispatcher({ ahead }: AttemptView, { hasPlace }: DispatcherView): Decision {
  return ahead > 0 || !hasPlace
    ? { kind: 'wait', because: 'busy', wakeInMs: Infinity }
    : { kind: 'now' };
}

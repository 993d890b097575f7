import { expectedWaitMs, isNear, longestWaitMs } from './expected-wait.ts';
import type { AttemptView, CircuitView, DispatcherView, EndpointView, Lane } from './views.ts';

/** Why an attempt cannot be made now. The closed label set of the metrics. */
export const REASONS = [
  // It was deferred, and its turn has not come.
  'turn',
  // The circuit of its endpoint is open, or a probe is under way.
  'circuit',
  // The endpoint takes a second or longer.
  'slow',
  // The endpoint asked for a pause (Retry-After).
  'hold',
  // The rate limit of the webhook, or the rate learned from its refusals.
  'pace',
  // All places of the endpoint are taken.
  'concurrency',
  // All places of this dispatcher are taken, or others stand in front.
  'busy',
] as const;

export type Reason = (typeof REASONS)[number];

export type Decision =
  | { kind: 'now' }
  /** `wakeInMs`: when time alone may change it, in milliseconds; Infinity when only an end can. */
  | { kind: 'wait'; because: Reason; wakeInMs: number }
  | { kind: 'slow lane'; because: Reason }
  | { kind: 'defer'; because: Reason; inMs: number };

/** An endpoint that is well answers its probe sooner, and nothing need be deferred for it. */
export const PROBE_PATIENCE_MS = 500;

/**
 * The one place that decides whether an attempt is made now, waits in memory, or goes away. What is
 * ours to mend (no free place in this process) is always waited for; only what the endpoint itself
 * cannot take is moved or deferred.
 */
export function decide(
  attempt: AttemptView,
  endpoint: EndpointView,
  dispatcher: DispatcherView,
): Decision {
  return (
    beforeItsTurn(attempt, dispatcher) ??
    byCircuit(endpoint.circuit) ??
    bySlowness(attempt, endpoint, dispatcher) ??
    byEndpoint(attempt, endpoint, dispatcher) ??
    byDispatcher(attempt, dispatcher)
  );
}

function beforeItsTurn({ turnInMs }: AttemptView, { maxWaitMs }: DispatcherView): Decision | null {
  return isNear(turnInMs, maxWaitMs) ? null : { kind: 'defer', because: 'turn', inMs: turnInMs };
}

function byCircuit(circuit: CircuitView): Decision | null {
  if (circuit.kind === 'closed') return null;
  const patienceMs = circuit.kind === 'probing' ? PROBE_PATIENCE_MS - circuit.sinceMs : 0;
  if (patienceMs > 0) return { kind: 'wait', because: 'circuit', wakeInMs: patienceMs };
  return { kind: 'defer', because: 'circuit', inMs: circuit.deferForMs };
}

/** One attempt at a time stays on the fast side, to see when the endpoint is well again. */
function bySlowness(
  { lane, ahead }: AttemptView,
  { isSlow, hasRateLimit, running }: EndpointView,
  { maySlowTry }: DispatcherView,
): Decision | null {
  if (!isSlow || lane === 'slow') return null;
  if (running.first + running.retry + ahead === 0 && maySlowTry) return null;
  return hasRateLimit
    ? { kind: 'defer', because: 'slow', inMs: 0 }
    : { kind: 'slow lane', because: 'slow' };
}

/** Waits while the wait that can be expected is short, and is deferred otherwise. */
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
  { lane }: AttemptView,
  endpoint: EndpointView,
): { because: Reason; wakeInMs: number } | null {
  const { holdInMs, paceInMs } = endpoint;
  if (holdInMs > 0) return { because: 'hold', wakeInMs: holdInMs };
  if (!hasPlaceAt(lane, endpoint)) return { because: 'concurrency', wakeInMs: Infinity };
  if (paceInMs > 0) return { because: 'pace', wakeInMs: paceInMs };
  return null;
}

/**
 * Retries take at most half of an endpoint's places, and what came over the slow lane is sure of a
 * quarter, so that no lane waits for another one to run dry.
 */
function hasPlaceAt(
  lane: Lane,
  {
    running,
    waitingSlow,
    wasSlowLast,
    concurrency,
  }: Pick<EndpointView, 'running' | 'waitingSlow' | 'wasSlowLast' | 'concurrency'>,
): boolean {
  const fast = running.first + running.retry;
  if (fast + running.slow >= concurrency) return false;
  if (lane === 'slow') return true;
  if (lane === 'retry' && running.retry >= Math.ceil(concurrency / 2)) return false;
  return waitingSlow === 0 || fast < concurrency - keptForSlow(concurrency, wasSlowLast);
}

/** With one place in all the lanes take turns. */
function keptForSlow(concurrency: number, wasSlowLast: boolean): number {
  if (concurrency === 1) return wasSlowLast ? 0 : 1;
  return Math.max(1, Math.floor(concurrency / 4));
}

function byDispatcher({ ahead }: AttemptView, { hasPlace }: DispatcherView): Decision {
  return ahead > 0 || !hasPlace
    ? { kind: 'wait', because: 'busy', wakeInMs: Infinity }
    : { kind: 'now' };
}

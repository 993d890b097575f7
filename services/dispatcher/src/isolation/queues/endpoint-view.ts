import { concurrencyOf } from '../endpoint/endpoint.ts';
import { hasTurnsAtHost, hostSpacingMs, untilHostAllowsMs } from '../endpoint/host-pace.ts';
import { paceOf, spacingMs, untilPaceAllowsMs } from '../endpoint/pace.ts';
import { isSlow } from '../endpoint/when-endpoint-is-slow.ts';
import type { AttemptView, EndpointView } from '../gate/views.ts';
import type { Candidate } from './admission.ts';
import type { QueuedEndpoint, QueueState } from './queue-state.ts';

export interface QueuePosition {
  /** How many attempts of its queue are ahead of it. */
  ahead: number;
  /** False when it has just come and does not stand in a queue yet. */
  isWaiting: boolean;
}

/**
 * Memory is asked for by the company of the endpoint, as `startWaiting` does. If the two named different companies,
 * `startWaiting` would choose the same endpoint again and again.
 */
export function attemptViewOf(
  { nowMs, suspendedForMs, payloads }: QueueState,
  endpoint: QueuedEndpoint,
  { queue, companyId, turnAtMs, hasPayload }: Candidate,
  { ahead, isWaiting }: QueuePosition,
): AttemptView {
  return {
    queue,
    ahead,
    turnInMs: turnAtMs === null ? 0 : Math.max(0, turnAtMs - nowMs()),
    precedesBooked: isWaiting || turnAtMs !== null,
    lacksMemory: !hasPayload() && !payloads.hasRoom(endpoint.companyId),
    suspendedForMs: suspendedForMs(companyId),
  };
}

export function endpointViewOf(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
): EndpointView {
  const nowMs = state.monotonicMs();
  const { running, waiting, holdUntilMs, bookedUntilMs, host } = endpoint;
  const bookedMs = Math.max(bookedUntilMs, host?.bookedUntilMs ?? 0);
  return {
    circuit: state.circuitOf(candidate),
    isSlow: isSlow(endpoint, nowMs),
    hasRateLimit: candidate.rateLimitPerSecond !== null,
    isPaced: hasTurnsAtHost(endpoint, state.nowMs()) || paceOf(endpoint, nowMs) !== null,
    holdInMs: Math.max(0, holdUntilMs - nowMs),
    paceInMs: untilPaceAllowsMs(endpoint, nowMs),
    hostInMs: untilHostAllowsMs(endpoint, nowMs),
    bookedInMs: bookedMs === 0 ? 0 : Math.max(0, bookedMs - state.nowMs()),
    running,
    waitingSlow: waiting.slow.size(),
    wasSlowLast: endpoint.wasSlowLast,
    concurrency: concurrencyOf(endpoint),
    spacingMs: Math.max(spacingMs(endpoint, nowMs), hostSpacingMs(endpoint, nowMs)),
  };
}

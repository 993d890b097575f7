import { concurrencyOf, isSlow } from '../endpoint/endpoint.ts';
import { decide, type Decision } from '../gate/gate.ts';
import type { AttemptView, EndpointView } from '../gate/views.ts';
import { spacingMs, untilPaceAllowsMs } from '../endpoint/pace.ts';
import { poolOf, type Candidate, type Known, type Pool, type QueueState } from './queue-state.ts';

interface Standing {
  /** Attempts of its lane in front of it. */
  ahead: number;
  /** It stands in a queue, and does not only come. */
  isWaiting: boolean;
}

/** Asks the gate for one attempt, with what is known now. */
export function decideFor(
  state: QueueState,
  endpoint: Known,
  candidate: Candidate,
  { hasPlace, ...standing }: Standing & { hasPlace: boolean },
): Decision {
  return decide(
    attemptViewOf(state, candidate, standing),
    endpointViewOf(state, endpoint, candidate),
    {
      hasPlace,
      // Slow endpoints together hold at most a quarter of the fast places.
      maySlowTry: state.stuck < state.limits.fast / 4,
      maxWaitMs: state.maxWaitMs(),
      // A queue of more than all places together is not of our making alone.
      isOverloaded: state.isOverloaded() && standing.ahead < state.limits.fast,
    },
  );
}

export function attemptViewOf(
  { nowMs }: QueueState,
  { lane, turnAtMs }: Candidate,
  { ahead, isWaiting }: Standing,
): AttemptView {
  return {
    lane,
    ahead,
    turnInMs: turnAtMs === null ? 0 : Math.max(0, turnAtMs - nowMs()),
    isInFront: isWaiting || turnAtMs !== null,
  };
}

export function endpointViewOf(
  state: QueueState,
  endpoint: Known,
  candidate: Candidate,
): EndpointView {
  const nowMs = state.monotonicMs();
  const { running, waiting, holdUntilMs, bookedUntilMs } = endpoint;
  return {
    circuit: state.circuitOf(candidate),
    isSlow: isSlow(endpoint, nowMs),
    hasRateLimit: candidate.rateLimitPerSecond !== null,
    holdInMs: Math.max(0, holdUntilMs - nowMs),
    paceInMs: untilPaceAllowsMs(endpoint, nowMs),
    bookedInMs: bookedUntilMs === 0 ? 0 : Math.max(0, bookedUntilMs - state.nowMs()),
    running,
    waitingSlow: waiting.slow.size(),
    wasSlowLast: endpoint.wasSlowLast,
    concurrency: concurrencyOf(endpoint),
    spacingMs: spacingMs(endpoint, nowMs),
  };
}

export function hasPlace(state: QueueState, { lane }: Candidate): boolean {
  return mayBegin(state, poolOf(lane));
}

/** A place is free, and this turn of the event loop has not begun its share. */
export function mayBegin({ taken, limits, beginsLeft }: QueueState, pool: Pool): boolean {
  return taken[pool] < limits[pool] && beginsLeft[pool] > 0;
}

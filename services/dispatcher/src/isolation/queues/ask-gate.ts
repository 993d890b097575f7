import { decide, type Decision } from '../gate/gate.ts';
import type { Candidate } from './admission.ts';
import { attemptViewOf, endpointViewOf, type QueuePosition } from './endpoint-view.ts';
import {
  mayStart,
  poolOf,
  type Pool,
  type QueuedEndpoint,
  type QueueState,
} from './queue-state.ts';

/**
 * The position of the first attempt of a queue. Whether a place is free is not asked here: it is
 * checked when the endpoint comes next in the order of its pool.
 */
const HEAD = { ahead: 0, isWaiting: true, hasPlace: true };

/** Returns the decision of the gate for an attempt that has just come. */
export function decideForNew(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  ahead: number,
): Decision {
  const hasPlace = mayStart(state, poolOf(candidate.queue));
  return decideFor(state, endpoint, candidate, { ahead, isWaiting: false, hasPlace });
}

/** Returns the decision of the gate for the first attempt of a queue. */
export function decideForHead(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
): Decision {
  return decideFor(state, endpoint, candidate, HEAD);
}

/** Returns the decision of the gate for one attempt, with what is known now. */
export function decideFor(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  { ahead, isWaiting, hasPlace }: QueuePosition & { hasPlace: boolean },
): Decision {
  return decide(
    attemptViewOf(state, endpoint, candidate, { ahead, isWaiting }),
    endpointViewOf(state, endpoint, candidate),
    {
      hasPlace,
      // Slow endpoints together hold at most a quarter of the fast places.
      maySlowUseFast: state.slowFast < state.limits.fast / 4,
      maxWaitMs: state.maxWaitMs(),
      isOverloaded: isDueToOverload(state, poolOf(candidate.queue), ahead),
    },
  );
}

/**
 * True when a queue of this length is due to our overload. Deferring its attempts would not help.
 * One that is longer than all places together, and than twice the mean of all endpoints, is not: its
 * endpoint takes less than others. After an outage of Kafka every queue is long, and with eight endpoints
 * 189,000 deferrals were written for 82,000 attempts.
 */
export function isDueToOverload(
  { isOverloaded, limits, waiting, endpoints }: QueueState,
  pool: Pool,
  ahead: number,
): boolean {
  if (!isOverloaded()) return false;
  const mean = waiting[pool] / Math.max(1, endpoints.size);
  return ahead < Math.max(limits.fast, 2 * mean);
}

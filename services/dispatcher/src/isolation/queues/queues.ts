import type { Endpoint } from '../endpoint/endpoint.ts';
import { attemptViewOf, decideFor, endpointViewOf, hasPlace } from './endpoint-view.ts';
import { expectedWaitMs } from '../gate/expected-wait.ts';
import { findSlow, forgetIdle } from './find-slow.ts';
import {
  createQueueState,
  findOrAdd,
  poolOf,
  type Admission,
  type Candidate,
  type QueueDeps,
  type QueueState,
} from './queue-state.ts';
import { sendAllAway, sendOverdueAway, sendSurplusAway } from './send-away.ts';
import { admissionOf, serveAfter } from './serve-queues.ts';

export interface Queues {
  /** Resolves when the attempt may be made, or must go elsewhere. */
  enter: (candidate: Candidate) => Promise<Admission>;
  /** Requests under way. */
  running: () => number;
  /** True when all fast places are taken and enough attempts wait to take them over. */
  isFull: () => boolean;
  waiting: () => number;
  endpoints: () => Iterable<Endpoint>;
  /** How many endpoints are remembered. */
  size: () => number;
  /** Webhook id → for how many milliseconds from now a former owner was asked not to send. */
  inheritHolds: (holds: ReadonlyMap<string, number>) => void;
  /**
   * Finds endpoints that turned slow, attempts that have waited for too long, and those that must
   * leave for want of memory; for every 100 ms.
   */
  tick: () => void;
  /** Sends away whoever waits, and lets nobody wait any more. */
  close: () => void;
}

export { ENDPOINT_BYTES, MAX_IDLE_ENDPOINTS } from './queue-state.ts';

/** Who is expected to wait for longer waits as ids; for less the payload is not worth loading again. */
const KEEP_PAYLOAD_MS = 1_000;

/**
 * Every endpoint has queues of its own, and free places go round between companies and their
 * endpoints. The gate decides whether an attempt goes, waits or leaves; it is applied here.
 */
export function createQueues(deps: QueueDeps): Queues {
  const state = createQueueState(deps);
  const { limits, taken, waiting } = state;
  return {
    enter: (candidate) => enter(state, candidate),
    running: () => state.requests.size,
    isFull: () => taken.fast >= limits.fast && waiting.fast >= limits.fast / 2,
    waiting: () => waiting.fast + waiting.slow,
    endpoints: () => state.endpoints.values(),
    size: () => state.endpoints.size,
    inheritHolds: (holds) => {
      inheritHolds(state, holds);
    },
    tick: () => {
      findSlow(state);
      sendOverdueAway(state);
      sendSurplusAway(state);
      forgetIdle(state);
    },
    close: () => {
      state.isClosed = true;
      sendAllAway(state);
    },
  };
}

function inheritHolds(state: QueueState, holds: ReadonlyMap<string, number>): void {
  const nowMs = state.monotonicMs();
  state.inheritedHolds = new Map([...holds].map(([id, forMs]) => [id, nowMs + forMs]));
  for (const [id, untilMs] of state.inheritedHolds) {
    const endpoint = state.endpoints.get(id);
    if (endpoint) endpoint.holdUntilMs = Math.max(endpoint.holdUntilMs, untilMs);
  }
}

function enter(state: QueueState, candidate: Candidate): Promise<Admission> {
  const endpoint = findOrAdd(state, candidate);
  const { lane } = candidate;
  const ahead = endpoint.waiting[lane].size();
  const decision = decideFor(state, endpoint, candidate, {
    ahead,
    isWaiting: false,
    hasPlace: hasPlace(state, candidate),
  });
  if (decision.kind !== 'wait' || state.isClosed) {
    return Promise.resolve(admissionOf(state, endpoint, candidate, decision));
  }
  const waitMs = expectedWaitMs(
    attemptViewOf(state, candidate, { ahead, isWaiting: false }),
    endpointViewOf(state, endpoint, candidate),
  );
  if (waitMs > KEEP_PAYLOAD_MS) candidate.dropPayload();
  return new Promise((admit) => {
    endpoint.waiting[lane].push({ candidate, sinceMs: state.monotonicMs(), admit });
    state.waiting[poolOf(lane)] += 1;
    // Its time may have come since the gate was asked.
    if (ahead === 0) serveAfter(state, endpoint);
  });
}

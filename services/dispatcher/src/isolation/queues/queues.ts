import type { Endpoint } from '../endpoint/endpoint.ts';
import {
  inheritedHolds,
  inheritedUntilMs,
  type HandedOverHold,
} from '../endpoint/inherited-holds.ts';
import { expectedWaitMs } from '../gate/how-long-attempts-wait.ts';
import type { Admission, Candidate } from './admission.ts';
import { decideForNew } from './ask-gate.ts';
import { attemptViewOf, endpointViewOf } from './endpoint-view.ts';
import { evictAll, evictOverdue, evictSurplus } from './evict-waiting.ts';
import { forgetIdle } from './forget-idle.ts';
import { markSlow } from './mark-slow.ts';
import {
  createQueueState,
  updateEndpoint,
  poolOf,
  type Pool,
  type QueueDeps,
  type QueueState,
} from './queue-state.ts';
import { applyDecision, reschedule, startWaitingForMemory } from './serve-queues.ts';

export interface Queues {
  /** Resolves when the attempt may be made, or must leave. */
  enter: (candidate: Candidate) => Promise<Admission>;
  /** Requests under way. */
  running: () => number;
  /** True when all places of the pool are taken and enough attempts wait to take them over. */
  isFull: (pool: Pool) => boolean;
  waiting: () => number;
  endpoints: () => Iterable<Endpoint>;
  /** How many endpoints are remembered. */
  size: () => number;
  /** How many inherited holds are kept. */
  inheritedHolds: () => number;
  /** `holds`: webhook id → what is left of a hold that a former owner was asked for. */
  inheritHolds: (holds: ReadonlyMap<string, HandedOverHold>) => void;
  /**
   * Marks endpoints that turned slow, evicts attempts that waited too long or that memory has no
   * capacity for, and forgets idle endpoints. To be called each 100 ms.
   */
  tick: () => void;
  /** Evicts every waiting attempt; from then on none may wait. */
  close: () => void;
}

/**
 * An attempt that is expected to wait longer drops its payload. For less it is not worth loading it
 * again.
 */
const KEEP_PAYLOAD_MS = 1_000;

/**
 * Every endpoint has queues of its own, and free places go round between companies and their
 * endpoints. The gate decides whether an attempt is made, waits or leaves.
 */
export function createQueues(deps: QueueDeps): Queues {
  const state = createQueueState(deps);
  const { limits, taken, waiting } = state;
  deps.payloads.onFreed(() => {
    startWaitingForMemory(state);
  });
  return {
    enter: (candidate) => enter(state, candidate),
    running: () => state.requests.size,
    isFull: (pool) => taken[pool] >= limits[pool] && waiting[pool] >= limits[pool] / 2,
    waiting: () => waiting.fast + waiting.slow,
    endpoints: () => state.endpoints.values(),
    size: () => state.endpoints.size,
    inheritedHolds: () => state.inheritedHolds.size,
    inheritHolds: (holds) => {
      inheritHolds(state, holds);
    },
    tick: () => {
      markSlow(state);
      evictOverdue(state);
      evictSurplus(state);
      forgetIdle(state);
    },
    close: () => {
      state.isClosed = true;
      evictAll(state);
    },
  };
}

function inheritHolds(state: QueueState, holds: ReadonlyMap<string, HandedOverHold>): void {
  state.inheritedHolds = inheritedHolds(holds, state.monotonicMs());
  for (const id of holds.keys()) {
    const endpoint = state.endpoints.get(id);
    if (!endpoint) continue;
    const untilMs = inheritedUntilMs(state.inheritedHolds, endpoint);
    endpoint.holdUntilMs = Math.max(endpoint.holdUntilMs, untilMs);
  }
}

function enter(state: QueueState, candidate: Candidate): Promise<Admission> {
  state.onArrival(candidate);
  const formerUrl = state.endpoints.get(candidate.webhookId)?.url ?? candidate.url;
  const endpoint = updateEndpoint(state, candidate);
  // What waits for the hold of the former URL need not wait any more.
  if (formerUrl !== candidate.url) {
    state.inNextLoop(() => {
      reschedule(state, endpoint);
    });
  }
  const { queue } = candidate;
  const ahead = endpoint.waiting[queue].size();
  const decision = decideForNew(state, endpoint, candidate, ahead);
  if (decision.kind !== 'wait' || state.isClosed) {
    return Promise.resolve(applyDecision(state, endpoint, candidate, decision));
  }
  const waitMs = expectedWaitMs(
    attemptViewOf(state, endpoint, candidate, { ahead, isWaiting: false }),
    endpointViewOf(state, endpoint, candidate),
  );
  if (waitMs > KEEP_PAYLOAD_MS) candidate.dropPayload();
  return new Promise((admit) => {
    endpoint.waiting[queue].push({ candidate, sinceMs: state.monotonicMs(), admit });
    state.waiting[poolOf(queue)] += 1;
    // Its time may have come since the gate was asked.
    if (ahead === 0) reschedule(state, endpoint);
  });
}

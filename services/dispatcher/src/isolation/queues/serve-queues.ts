import { reserveHostStart } from '../endpoint/host-pace.ts';
import type { Decision } from '../gate/gate.ts';
import type { QueueKind } from '../gate/views.ts';
import { fastQueuesInOrder } from '../gate/who-goes-next.ts';
import type { Admission, Candidate } from './admission.ts';
import { decideForHead } from './ask-gate.ts';
import { bookBehindOthers, bookTurn } from './book-turn.ts';
import { forgetIfTooMany } from './forget-idle.ts';
import {
  mayStart,
  poolOf,
  QUEUES,
  type Pool,
  type QueuedEndpoint,
  type QueueState,
  type WaitingAttempt,
} from './queue-state.ts';
import { takePlace } from './take-place.ts';

const POOLS: readonly Pool[] = ['fast', 'slow'];
/** Fast once more at the end: when the queue of the slow lane is empty, its quarter is free for others. */
const SERVED: readonly Pool[] = ['fast', 'slow', 'fast'];
const SLOW_ONLY: readonly QueueKind[] = ['slow'];

/** Applies a decision of the gate. The one place that does. */
export function applyDecision(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  decision: Decision,
): Admission {
  switch (decision.kind) {
    case 'now':
      countStart(state, poolOf(candidate.queue));
      return { kind: 'place', place: takePlace(state, endpoint, candidate, reschedule) };
    case 'slow_lane':
      return { kind: 'slow_lane' };
    case 'wait':
      return refuseWait(state, endpoint, candidate, decision);
    case 'defer': {
      const turnAtMs = bookTurn(state, endpoint, candidate, decision);
      return { kind: 'defer', because: decision.because, turnAtMs };
    }
  }
}

/**
 * Of 2,000 attempts that come due together, each company starts some in each iteration of the event
 * loop. Between two iterations the process reads the responses that have come.
 */
function countStart(state: QueueState, pool: Pool): void {
  state.startsLeft[pool] -= 1;
  if (state.isNextLoopScheduled) return;
  state.isNextLoopScheduled = true;
  state.inNextLoop(() => {
    state.isNextLoopScheduled = false;
    state.startsLeft = { ...state.limits.startsPerLoop };
    for (const each of SERVED) startWaiting(state, each);
  });
}

/**
 * For an attempt that would have to wait in a dispatcher that stops. Another dispatcher reads the slow
 * lane at once; what must not go there is deferred.
 */
export function refuseWait(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  { because }: Extract<Decision, { kind: 'wait' }>,
): Admission {
  if (candidate.queue !== 'slow' && candidate.rateLimitPerSecond === null) {
    return { kind: 'slow_lane' };
  }
  return { kind: 'defer', because, turnAtMs: bookBehindOthers(state, endpoint, 0) };
}

/** To be called when something changed at the endpoint, or a place came free. */
export function reschedule(state: QueueState, endpoint: QueuedEndpoint): void {
  updateHeads(state, endpoint);
  for (const pool of SERVED) startWaiting(state, pool);
  forgetIfTooMany(state, endpoint);
}

/**
 * Asks the gate for the first attempt of each queue of the endpoint. Those that must leave are
 * evicted. An endpoint with an attempt that may be made stands in the order of its pool, and one with an attempt that
 * lacks memory in the order of those.
 */
export function updateHeads(state: QueueState, endpoint: QueuedEndpoint): void {
  const isReady: Record<Pool, boolean> = { fast: false, slow: false };
  const lacksMemory: Record<Pool, boolean> = { fast: false, slow: false };
  let wakeInMs = Infinity;
  for (const queue of QUEUES) {
    const decision = evictHeads(state, endpoint, queue);
    if (decision?.kind === 'now') isReady[poolOf(queue)] = true;
    if (decision?.kind !== 'wait') continue;
    if (decision.because === 'memory') lacksMemory[poolOf(queue)] = true;
    if (decision.because === 'host') reserveHostStart(endpoint, state.monotonicMs());
    wakeInMs = Math.min(wakeInMs, decision.wakeInMs);
  }
  for (const pool of POOLS) {
    if (isReady[pool]) state.order[pool].add(endpoint);
    else state.order[pool].remove(endpoint);
    if (lacksMemory[pool]) state.awaitingMemory[pool].add(endpoint);
    else state.awaitingMemory[pool].remove(endpoint);
  }
  setWake(state, endpoint, wakeInMs);
}

/** Returns the decision for the first attempt that stays; null when none does. */
function evictHeads(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
): Decision | null {
  for (;;) {
    const head = endpoint.waiting[queue].peek();
    if (!head) return null;
    const decision = decideForHead(state, endpoint, head.candidate);
    if (decision.kind === 'now' || decision.kind === 'wait') return decision;
    takeHead(state, endpoint, queue);
    head.admit(applyDecision(state, endpoint, head.candidate, decision));
  }
}

function setWake(state: QueueState, endpoint: QueuedEndpoint, inMs: number): void {
  const atMs = state.monotonicMs() + inMs;
  if (endpoint.cancelWake && endpoint.wakeAtMs <= atMs && inMs < Infinity) return;
  endpoint.cancelWake?.();
  endpoint.cancelWake = null;
  endpoint.wakeAtMs = atMs;
  if (inMs === Infinity) return;
  endpoint.cancelWake = state.wakeAfter(inMs, () => {
    endpoint.cancelWake = null;
    reschedule(state, endpoint);
  });
}

/** To be called when memory for payloads came free. */
export function startWaitingForMemory(state: QueueState): void {
  for (const pool of SERVED) startWaiting(state, pool);
}

/** What waited for memory goes first: it had its turn before. */
function startWaiting(state: QueueState, pool: Pool): void {
  const { order, awaitingMemory, payloads } = state;
  while (mayStart(state, pool)) {
    const endpoint = awaitingMemory[pool].next(payloads.hasRoom) ?? order[pool].next();
    if (!endpoint) return;
    startNext(state, endpoint, pool);
    updateHeads(state, endpoint);
  }
}

function startNext(state: QueueState, endpoint: QueuedEndpoint, pool: Pool): void {
  countChoice(endpoint, pool);
  for (const queue of queuesInOrder(endpoint, pool)) {
    const head = endpoint.waiting[queue].peek();
    if (!head) continue;
    const decision = decideForHead(state, endpoint, head.candidate);
    if (decision.kind !== 'now') continue;
    takeHead(state, endpoint, queue);
    head.admit(applyDecision(state, endpoint, head.candidate, decision));
    return;
  }
}

function queuesInOrder(endpoint: QueuedEndpoint, pool: Pool): readonly QueueKind[] {
  return pool === 'slow' ? SLOW_ONLY : fastQueuesInOrder(endpoint.choices);
}

/** Only a real choice between first attempts and retries counts. */
function countChoice(endpoint: QueuedEndpoint, pool: Pool): void {
  const { waiting } = endpoint;
  const isChoice = pool === 'fast' && waiting.first.size() > 0 && waiting.retry.size() > 0;
  if (isChoice) endpoint.choices += 1;
}

export function takeHead(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
): WaitingAttempt | undefined {
  state.waiting[poolOf(queue)] -= 1;
  return endpoint.waiting[queue].shift();
}

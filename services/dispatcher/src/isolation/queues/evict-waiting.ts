import type { Decision, Reason } from '../gate/gate.ts';
import { MAX_WAIT_MS, MIN_WAIT_MS } from '../gate/how-long-attempts-wait.ts';
import type { QueueKind } from '../gate/views.ts';
import { decideFor, decideForHead, isDueToOverload } from './ask-gate.ts';
import {
  poolOf,
  QUEUES,
  type QueuedEndpoint,
  type QueueState,
  type WaitingAttempt,
} from './queue-state.ts';
import { applyDecision, refuseWait, reschedule, takeHead, updateHeads } from './serve-queues.ts';

const CLOSING: Extract<Decision, { kind: 'wait' }> = {
  kind: 'wait',
  because: 'busy',
  wakeInMs: Infinity,
};

/**
 * Defers what has waited too long for its endpoint, or for memory, which others may hold for long. What waits for a
 * place of this process or for its CPU time stays.
 */
export function evictOverdue(state: QueueState): void {
  const beforeMs = state.monotonicMs() - MAX_WAIT_MS;
  for (const endpoint of state.endpoints.values()) {
    for (const queue of QUEUES) evictOverdueOf(state, endpoint, queue, beforeMs);
  }
}

function evictOverdueOf(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
  beforeMs: number,
): void {
  for (;;) {
    const head = endpoint.waiting[queue].peek();
    if (!head || head.sinceMs >= beforeMs) return;
    const decision = decideForHead(state, endpoint, head.candidate);
    if (decision.kind !== 'wait' || waitsForPlaceOrCpu(state, endpoint, queue, decision.because)) {
      reschedule(state, endpoint);
      return;
    }
    takeHead(state, endpoint, queue);
    const { because } = decision;
    head.admit(applyDecision(state, endpoint, head.candidate, { kind: 'defer', because, inMs: 0 }));
  }
}

function waitsForPlaceOrCpu(
  state: QueueState,
  { waiting }: QueuedEndpoint,
  queue: QueueKind,
  because: Reason,
): boolean {
  if (because === 'busy') return true;
  return because === 'concurrency' && isDueToOverload(state, poolOf(queue), waiting[queue].size());
}

/**
 * Bounded for each call, so that evicted attempts have left before more of them do. A queue of 14,000
 * is shortened within some seconds, at ten calls a second.
 */
const MAX_SURPLUS_PER_CALL = 250;

/**
 * When memory is so short that soon nothing more is read, evicts the newest attempts of endpoints
 * that cannot take their load. Otherwise the queue of one endpoint, admitted while there was memory,
 * would stop all other endpoints from being read for as long as it lasts.
 */
export function evictSurplus(state: QueueState): void {
  if (state.maxWaitMs() > MIN_WAIT_MS) return;
  let left = MAX_SURPLUS_PER_CALL;
  for (const endpoint of state.endpoints.values()) {
    for (const queue of QUEUES) left -= evictNewest(state, endpoint, queue, left);
    if (left === 0) return;
  }
}

/** Returns how many were evicted. */
function evictNewest(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
  atMost: number,
): number {
  const waiting = endpoint.waiting[queue];
  for (let evicted = 0; evicted < atMost; evicted += 1) {
    const newest = waiting.peekLast();
    const ahead = waiting.size() - 1;
    if (!newest || ahead === 0) return evicted;
    const position = { ahead, isWaiting: true, hasPlace: true };
    const decision = decideFor(state, endpoint, newest.candidate, position);
    if (decision.kind !== 'defer') return evicted;
    waiting.pop();
    state.waiting[poolOf(queue)] -= 1;
    newest.admit(applyDecision(state, endpoint, newest.candidate, decision));
  }
  return atMost;
}

/** Evicts every waiting attempt, whatever the gate says. */
export function evictAll(state: QueueState): void {
  for (const endpoint of state.endpoints.values()) {
    for (const queue of QUEUES) {
      for (const { candidate, admit } of takeAll(state, endpoint, queue)) {
        admit(refuseWait(state, endpoint, candidate, CLOSING));
      }
    }
    updateHeads(state, endpoint);
  }
}

function* takeAll(
  state: QueueState,
  endpoint: QueuedEndpoint,
  queue: QueueKind,
): Iterable<WaitingAttempt> {
  for (;;) {
    if (endpoint.waiting[queue].size() === 0) return;
    const head = takeHead(state, endpoint, queue);
    if (head) yield head;
  }
}

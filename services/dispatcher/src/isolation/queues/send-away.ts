import { decideFor } from './endpoint-view.ts';
import type { Decision } from '../gate/gate.ts';
import type { Lane } from '../gate/views.ts';
import { MIN_WAIT_MS } from '../gate/max-wait.ts';
import { LANES, poolOf, type Known, type QueueState, type Waiting } from './queue-state.ts';
import { admissionOf, arrange, elsewhere, HEAD, serveAfter, takeHead } from './serve-queues.ts';

/** An attempt that waits holds back the commit of its partition. */
const MAX_WAIT_MS = 30_000;
const CLOSING: Extract<Decision, { kind: 'wait' }> = {
  kind: 'wait',
  because: 'busy',
  wakeInMs: Infinity,
};

/** Who waits for its endpoint for too long is deferred; who waits for a place of ours waits on. */
export function sendOverdueAway(state: QueueState): void {
  const beforeMs = state.monotonicMs() - MAX_WAIT_MS;
  for (const endpoint of state.endpoints.values()) {
    for (const lane of LANES) sendOldAway(state, endpoint, lane, beforeMs);
  }
}

function sendOldAway(state: QueueState, endpoint: Known, lane: Lane, beforeMs: number): void {
  for (;;) {
    const head = endpoint.waiting[lane].peek();
    if (!head || head.sinceMs >= beforeMs) return;
    const decision = decideFor(state, endpoint, head.candidate, HEAD);
    if (decision.kind !== 'wait' || decision.because === 'busy') {
      serveAfter(state, endpoint);
      return;
    }
    takeHead(state, endpoint, lane);
    const { because } = decision;
    head.admit(admissionOf(state, endpoint, head.candidate, { kind: 'defer', because, inMs: 0 }));
  }
}

/**
 * With each call, so that what leaves has left before more of it does: a queue of 14,000 is shortened
 * within some seconds, ten calls each.
 */
const SURPLUS_AT_ONCE = 250;

/**
 * When memory is so short that soon nothing more is read, who came last to an endpoint that cannot
 * take its load leaves. Otherwise one endpoint's queue, let in while there was room, would keep all
 * other endpoints from being read for as long as it lasts.
 */
export function sendSurplusAway(state: QueueState): void {
  if (state.maxWaitMs() > MIN_WAIT_MS) return;
  let most = SURPLUS_AT_ONCE;
  for (const endpoint of state.endpoints.values()) {
    for (const lane of LANES) most -= sendLastAway(state, endpoint, lane, most);
    if (most === 0) return;
  }
}

/** Answers how many left. */
function sendLastAway(state: QueueState, endpoint: Known, lane: Lane, most: number): number {
  const queue = endpoint.waiting[lane];
  for (let left = 0; left < most; left += 1) {
    const last = queue.peekLast();
    const ahead = queue.size() - 1;
    if (!last || ahead === 0) return left;
    const standing = { ahead, isWaiting: true, hasPlace: true };
    const decision = decideFor(state, endpoint, last.candidate, standing);
    if (decision.kind !== 'defer') return left;
    queue.pop();
    state.waiting[poolOf(lane)] -= 1;
    last.admit(admissionOf(state, endpoint, last.candidate, decision));
  }
  return most;
}

/** Everybody leaves, whatever the gate says. */
export function sendAllAway(state: QueueState): void {
  for (const endpoint of state.endpoints.values()) {
    for (const lane of LANES) {
      for (const { candidate, admit } of takeAll(state, endpoint, lane)) {
        admit(elsewhere(state, endpoint, candidate, CLOSING));
      }
    }
    arrange(state, endpoint);
  }
}

function* takeAll(state: QueueState, endpoint: Known, lane: Lane): Iterable<Waiting> {
  for (;;) {
    if (endpoint.waiting[lane].size() === 0) return;
    const head = takeHead(state, endpoint, lane);
    if (head) yield head;
  }
}

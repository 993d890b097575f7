import { decideFor } from './endpoint-view.ts';
import type { Decision, Lane } from './gate.ts';
import { LANES, type Known, type QueueState, type Waiting } from './queue-state.ts';
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

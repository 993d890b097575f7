import { decideFor, mayBegin } from './endpoint-view.ts';
import type { Decision } from '../gate/gate.ts';
import type { Lane } from '../gate/views.ts';
import { spacingMs } from '../endpoint/pace.ts';
import {
  forgetIfMany,
  LANES,
  poolOf,
  type Admission,
  type Candidate,
  type Known,
  type Pool,
  type QueueState,
  type Waiting,
} from './queue-state.ts';
import { startTurn } from './take-turn.ts';

/** A dead endpoint's backlog comes back at this distance, a hundred a second, and not all at once. */
const SPREAD_MS = 10;
const MAX_SPREAD_MS = 30 * 60_000;
/** What was deferred comes back at the earliest then. */
const BOOK_AHEAD_MS = 5_000;
/** One turn in four goes to a retry where first attempts of the endpoint wait as well. */
const RETRY_EVERY = 4;
/** For the first of a queue. Whether a place is free is looked at when its turn comes. */
export const HEAD = { ahead: 0, isWaiting: true, hasPlace: true };

const POOLS: readonly Pool[] = ['fast', 'slow'];
/** When nobody waits in the slow lane any more, its quarter of the endpoint is free for others. */
const SERVED: readonly Pool[] = ['fast', 'slow', 'fast'];
const FIRST_BEFORE_RETRY: readonly Lane[] = ['first', 'retry'];
const RETRY_BEFORE_FIRST: readonly Lane[] = ['retry', 'first'];
const SLOW_ALONE: readonly Lane[] = ['slow'];

/** Applies what the gate has decided. */
export function admissionOf(
  state: QueueState,
  endpoint: Known,
  candidate: Candidate,
  decision: Decision,
): Admission {
  switch (decision.kind) {
    case 'now':
      countBegin(state, poolOf(candidate.lane));
      return { kind: 'turn', turn: startTurn(state, endpoint, candidate, serveAfter) };
    case 'slow lane':
      return { kind: 'slow lane' };
    case 'wait':
      return elsewhere(state, endpoint, candidate, decision);
    case 'defer': {
      const turnAtMs = turnAtOf(state, endpoint, candidate, decision);
      return { kind: 'defer', because: decision.because, turnAtMs };
    }
  }
}

/**
 * Of 2,000 attempts that come due together, each company begins some in each turn of the event loop;
 * between two turns the process reads what has come for the others.
 */
function countBegin(state: QueueState, pool: Pool): void {
  state.beginsLeft[pool] -= 1;
  if (state.isNextTurnAsked) return;
  state.isNextTurnAsked = true;
  state.inNextTurn(() => {
    state.isNextTurnAsked = false;
    state.beginsLeft = { ...state.limits.beginsATurn };
    for (const each of SERVED) serve(state, each);
  });
}

/** For who would wait here and may not: another dispatcher takes it from the slow lane at once. */
export function elsewhere(
  state: QueueState,
  endpoint: Known,
  candidate: Candidate,
  { because }: Extract<Decision, { kind: 'wait' }>,
): Admission {
  if (candidate.lane !== 'slow' && candidate.rateLimitPerSecond === null) {
    return { kind: 'slow lane' };
  }
  return { kind: 'defer', because, turnAtMs: book(state, endpoint, 0) };
}

function turnAtOf(
  state: QueueState,
  endpoint: Known,
  { turnAtMs }: Candidate,
  { because, inMs }: Extract<Decision, { kind: 'defer' }>,
): number {
  const nowMs = state.nowMs();
  if (because === 'circuit') {
    endpoint.deferredByCircuit += 1;
    return nowMs + Math.max(inMs, spreadMsOf(endpoint));
  }
  // A turn that was given is kept.
  if (turnAtMs !== null && turnAtMs > nowMs) return turnAtMs;
  return book(state, endpoint, inMs);
}

function spreadMsOf({ deferredByCircuit }: Known): number {
  return Math.min(deferredByCircuit * SPREAD_MS, MAX_SPREAD_MS);
}

/** A turn behind those that wait here and those that were booked before. */
function book(state: QueueState, endpoint: Known, inMs: number): number {
  const earliestMs = state.nowMs() + Math.max(BOOK_AHEAD_MS, inMs);
  endpoint.bookedUntilMs =
    Math.max(endpoint.bookedUntilMs, earliestMs) + spacingMs(endpoint, state.monotonicMs());
  return endpoint.bookedUntilMs;
}

/** Something has changed at the endpoint, or a place has come free. */
export function serveAfter(state: QueueState, endpoint: Known): void {
  arrange(state, endpoint);
  for (const pool of SERVED) serve(state, pool);
  forgetIfMany(state, endpoint);
}

/** Sees to the heads of the endpoint's queues: who may go stands in line for a place, who must leave leaves. */
export function arrange(state: QueueState, endpoint: Known): void {
  const mayGo: Record<Pool, boolean> = { fast: false, slow: false };
  let wakeInMs = Infinity;
  for (const lane of LANES) {
    const decision = sendHeadsAway(state, endpoint, lane);
    if (decision?.kind === 'now') mayGo[poolOf(lane)] = true;
    if (decision?.kind === 'wait') wakeInMs = Math.min(wakeInMs, decision.wakeInMs);
  }
  for (const pool of POOLS) {
    if (mayGo[pool]) state.order[pool].add(endpoint);
    else state.order[pool].remove(endpoint);
  }
  setWake(state, endpoint, wakeInMs);
}

/** Answers what is decided for the first one that stays; null when none does. */
function sendHeadsAway(state: QueueState, endpoint: Known, lane: Lane): Decision | null {
  for (;;) {
    const head = endpoint.waiting[lane].peek();
    if (!head) return null;
    const decision = decideFor(state, endpoint, head.candidate, HEAD);
    if (decision.kind === 'now' || decision.kind === 'wait') return decision;
    takeHead(state, endpoint, lane);
    head.admit(admissionOf(state, endpoint, head.candidate, decision));
  }
}

function setWake(state: QueueState, endpoint: Known, inMs: number): void {
  const atMs = state.monotonicMs() + inMs;
  if (endpoint.cancelWake && endpoint.wakeAtMs <= atMs && inMs < Infinity) return;
  endpoint.cancelWake?.();
  endpoint.cancelWake = null;
  endpoint.wakeAtMs = atMs;
  if (inMs === Infinity) return;
  endpoint.cancelWake = state.wakeAfter(inMs, () => {
    endpoint.cancelWake = null;
    serveAfter(state, endpoint);
  });
}

function serve(state: QueueState, pool: Pool): void {
  while (mayBegin(state, pool)) {
    const endpoint = state.order[pool].next();
    if (!endpoint) return;
    startNext(state, endpoint, pool);
    arrange(state, endpoint);
  }
}

function startNext(state: QueueState, endpoint: Known, pool: Pool): void {
  for (const lane of lanesInOrder(endpoint, pool)) {
    const head = endpoint.waiting[lane].peek();
    if (!head) continue;
    const decision = decideFor(state, endpoint, head.candidate, HEAD);
    if (decision.kind !== 'now') continue;
    takeHead(state, endpoint, lane);
    head.admit(admissionOf(state, endpoint, head.candidate, decision));
    return;
  }
}

function lanesInOrder(endpoint: Known, pool: Pool): readonly Lane[] {
  const { waiting } = endpoint;
  if (pool === 'slow') return SLOW_ALONE;
  if (waiting.first.size() === 0 || waiting.retry.size() === 0) return FIRST_BEFORE_RETRY;
  endpoint.picks += 1;
  return endpoint.picks % RETRY_EVERY === 0 ? RETRY_BEFORE_FIRST : FIRST_BEFORE_RETRY;
}

export function takeHead(state: QueueState, endpoint: Known, lane: Lane): Waiting | undefined {
  state.waiting[poolOf(lane)] -= 1;
  return endpoint.waiting[lane].shift();
}

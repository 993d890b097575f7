import { BOOK_AHEAD_MS, bookAtHost } from '../endpoint/host-pace.ts';
import { spacingMs } from '../endpoint/pace.ts';
import type { Decision } from '../gate/gate.ts';
import type { Candidate } from './admission.ts';
import type { QueuedEndpoint, QueueState } from './queue-state.ts';

/** The backlog of a dead endpoint comes back a hundred a second, not all at once. */
const SPREAD_MS = 10;
const MAX_SPREAD_MS = 30 * 60_000;

/**
 * Returns when a deferred attempt is to come again, in milliseconds since 1970. Books that time at
 * the endpoint, unless its circuit is open, its company is suspended, memory was short, or the attempt keeps a turn
 * that it was given before.
 */
export function bookTurn(
  state: QueueState,
  endpoint: QueuedEndpoint,
  { turnAtMs }: Candidate,
  { because, inMs }: Extract<Decision, { kind: 'defer' }>,
): number {
  const nowMs = state.nowMs();
  // Not at the endpoint, which can take it.
  if (because === 'suspended') return nowMs + inMs;
  if (because === 'memory') return nowMs + Math.max(BOOK_AHEAD_MS, inMs);
  if (because === 'circuit') {
    endpoint.deferredByCircuit += 1;
    return nowMs + Math.max(inMs, spreadMsOf(endpoint));
  }
  if (turnAtMs !== null && turnAtMs > nowMs) return turnAtMs;
  if (because === 'host' && endpoint.host)
    return bookAtHost(endpoint.host, nowMs + Math.max(BOOK_AHEAD_MS, inMs));
  return bookBehindOthers(state, endpoint, inMs);
}

function spreadMsOf({ deferredByCircuit }: QueuedEndpoint): number {
  return Math.min(deferredByCircuit * SPREAD_MS, MAX_SPREAD_MS);
}

/** Books a turn behind the attempts that wait here and the turns that were booked before. */
export function bookBehindOthers(
  state: QueueState,
  endpoint: QueuedEndpoint,
  inMs: number,
): number {
  const earliestMs = state.nowMs() + Math.max(BOOK_AHEAD_MS, inMs);
  endpoint.bookedUntilMs =
    Math.max(endpoint.bookedUntilMs, earliestMs) + spacingMs(endpoint, state.monotonicMs());
  return endpoint.bookedUntilMs;
}

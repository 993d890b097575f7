import type { CircuitReport } from '../circuits/when-circuit-opens.ts';
import { asksForHold, learn, learnWithoutToken, runningOf } from '../endpoint/endpoint.ts';
import { recentSuccesses } from '../endpoint/learned-rate.ts';
import { advanceHostPace } from '../endpoint/host-pace.ts';
import { advancePace } from '../endpoint/pace.ts';
import { isSlow } from '../endpoint/when-endpoint-is-slow.ts';
import type { AttemptReport, Candidate, Place } from './admission.ts';
import {
  poolOf,
  waitingOf,
  type QueuedEndpoint,
  type QueueState,
  type RunningAttempt,
} from './queue-state.ts';

/** Called when a place is free again. */
type AfterEnd = (state: QueueState, endpoint: QueuedEndpoint) => void;

/**
 * Takes a place at the endpoint and in its pool, memory for the payload, and one start of its pace, and begins the
 * attempt at its circuit.
 */
export function takePlace(
  state: QueueState,
  endpoint: QueuedEndpoint,
  candidate: Candidate,
  afterEnd: AfterEnd,
): Place {
  const { queue } = candidate;
  const attempt: RunningAttempt = {
    endpoint,
    queue,
    reportToCircuit: state.beginAttempt(candidate),
    payload: candidate.hasPayload() ? null : state.payloads.reserve(endpoint.companyId),
    startedStallFreeMs: null,
    startedMs: 0,
    isOverdue: false,
    isSlowFast: false,
    isOfFormerUrl: false,
    isOver: false,
  };
  if (queue !== 'slow' && isSlow(endpoint, state.monotonicMs())) countSlowFast(state, attempt);
  state.taken[poolOf(queue)] += 1;
  endpoint.running[queue] += 1;
  endpoint.wasSlowLast = queue === 'slow';
  advancePace(endpoint, state.monotonicMs(), waitingOf(endpoint) > 0);
  advanceHostPace(endpoint, state.monotonicMs());
  return {
    payload: attempt.payload,
    begin: () => begin(state, attempt),
    end: (report) => end(state, attempt, report, afterEnd),
  };
}

/** Counts a fast place that a slow endpoint holds, once. */
export function countSlowFast(state: QueueState, attempt: RunningAttempt): void {
  if (attempt.isSlowFast) return;
  attempt.isSlowFast = true;
  state.slowFast += 1;
}

function begin(state: QueueState, attempt: RunningAttempt): boolean {
  if (attempt.endpoint.holdUntilMs > state.monotonicMs()) return false;
  // Begun again: the requests are kept in the order in which they started.
  if (attempt.startedStallFreeMs !== null) state.requests.delete(attempt);
  attempt.startedStallFreeMs = state.stallFreeMs();
  attempt.startedMs = state.monotonicMs();
  attempt.isOfFormerUrl = false;
  state.requests.add(attempt);
  return true;
}

async function end(
  state: QueueState,
  attempt: RunningAttempt,
  report: AttemptReport | null,
  afterEnd: AfterEnd,
): Promise<void> {
  if (attempt.isOver) return;
  attempt.isOver = true;
  const { endpoint } = attempt;
  // Without a token the endpoint got nothing, and nothing is reported to its circuit.
  const shown = report?.outcome === 'token_failed' ? null : report;
  if (shown) learnFrom(state, attempt, shown);
  else if (report) learnWithoutToken(endpoint, durationMs(state, attempt), state.monotonicMs());
  try {
    await attempt.reportToCircuit(shown && circuitReportOf(state, endpoint, shown));
  } finally {
    // Not earlier: an attempt that came meanwhile would take the place of those that wait for it.
    freePlace(state, attempt);
    attempt.payload?.release();
    afterEnd(state, endpoint);
  }
}

function circuitReportOf(
  { monotonicMs }: QueueState,
  { rate }: QueuedEndpoint,
  report: AttemptReport,
): CircuitReport {
  return {
    outcome: report.outcome,
    asksForHold: asksForHold(report),
    recentSuccesses: recentSuccesses(rate, monotonicMs()),
  };
}

function learnFrom(state: QueueState, attempt: RunningAttempt, report: AttemptReport): void {
  const { endpoint, startedStallFreeMs, startedMs, isOfFormerUrl } = attempt;
  if (startedStallFreeMs === null || isOfFormerUrl) return;
  const endedMs = state.monotonicMs();
  const observed = {
    ...report,
    endedMs,
    startedMs,
    durationMs: durationMs(state, attempt),
    running: runningOf(endpoint),
    isLimited: waitingOf(endpoint) > 0,
  };
  const heldUntilMs = endpoint.holdUntilMs;
  learn(endpoint, observed, state.limits.perEndpoint);
  if (endpoint.holdUntilMs > heldUntilMs) {
    state.onHold(endpoint.webhookId, endpoint.url, endpoint.holdUntilMs - endedMs);
  }
}

function durationMs(state: QueueState, { startedStallFreeMs }: RunningAttempt): number {
  const nowMs = state.stallFreeMs();
  return nowMs - (startedStallFreeMs ?? nowMs);
}

function freePlace(state: QueueState, attempt: RunningAttempt): void {
  const { endpoint, queue, isOverdue, isSlowFast } = attempt;
  state.requests.delete(attempt);
  state.taken[poolOf(queue)] -= 1;
  endpoint.running[queue] -= 1;
  if (isOverdue) endpoint.overdue -= 1;
  if (isSlowFast) state.slowFast -= 1;
}

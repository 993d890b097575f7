import type { Shown as CircuitShown } from '../circuits/when-circuit-opens.ts';
import { asksForPause, learn, runningOf } from '../endpoint/endpoint.ts';
import { succeededLately } from '../endpoint/learned-rate.ts';
import { takePacedTurn } from '../endpoint/pace.ts';
import {
  poolOf,
  type Candidate,
  type Known,
  type QueueState,
  type Result,
  type Running,
  type Turn,
  waitingOf,
} from './queue-state.ts';

/** Called when a turn is over and its place is free. */
type AfterTurn = (state: QueueState, endpoint: Known) => void;

/** Takes a place at the endpoint and in its pool, a turn of its rate and a permit of its circuit. */
export function startTurn(
  state: QueueState,
  endpoint: Known,
  candidate: Candidate,
  after: AfterTurn,
): Turn {
  const { lane } = candidate;
  const running: Running = {
    endpoint,
    lane,
    report: state.permit(candidate),
    begunMs: null,
    begunAtMs: 0,
    isOverdue: false,
    isOver: false,
  };
  state.taken[poolOf(lane)] += 1;
  endpoint.running[lane] += 1;
  endpoint.wasSlowLast = lane === 'slow';
  takePacedTurn(endpoint, state.monotonicMs(), waitingOf(endpoint) > 0);
  return {
    begin: () => begin(state, running),
    end: (result) => end(state, running, result, after),
  };
}

function begin(state: QueueState, running: Running): boolean {
  if (running.endpoint.holdUntilMs > state.monotonicMs()) return false;
  running.begunMs = state.busyMs();
  running.begunAtMs = state.monotonicMs();
  state.requests.add(running);
  return true;
}

async function end(
  state: QueueState,
  running: Running,
  result: Result | null,
  after: AfterTurn,
): Promise<void> {
  if (running.isOver) return;
  running.isOver = true;
  const { endpoint } = running;
  if (result) learnFrom(state, running, result);
  try {
    await running.report(result && shownTo(state, endpoint, result));
  } finally {
    // Not earlier: who comes meanwhile would take the place before those that wait for it.
    leavePlace(state, running);
    after(state, endpoint);
  }
}

function shownTo({ monotonicMs }: QueueState, { rate }: Known, result: Result): CircuitShown {
  return {
    outcome: result.outcome,
    asksForPause: asksForPause(result),
    succeededLately: succeededLately(rate, monotonicMs()),
  };
}

function learnFrom(state: QueueState, running: Running, result: Result): void {
  const { endpoint, begunMs, begunAtMs } = running;
  if (begunMs === null) return;
  const endedMs = state.monotonicMs();
  const shown = {
    ...result,
    endedMs,
    startedMs: begunAtMs,
    durationMs: state.busyMs() - begunMs,
    running: runningOf(endpoint),
    isLimited: waitingOf(endpoint) > 0,
  };
  const heldUntilMs = endpoint.holdUntilMs;
  learn(endpoint, shown, state.limits.perEndpoint);
  if (endpoint.holdUntilMs > heldUntilMs) {
    state.onHold(endpoint.webhookId, endpoint.holdUntilMs - endedMs);
  }
}

function leavePlace(state: QueueState, running: Running): void {
  const { endpoint, lane, isOverdue } = running;
  state.requests.delete(running);
  state.taken[poolOf(lane)] -= 1;
  endpoint.running[lane] -= 1;
  if (!isOverdue) return;
  endpoint.overdue -= 1;
  if (lane !== 'slow') state.stuck -= 1;
}

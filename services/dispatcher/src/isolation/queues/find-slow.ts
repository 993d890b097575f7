import { isSlow, SLOW_MS } from '../endpoint/endpoint.ts';
import { isIdle, type Known, type QueueState, type Running } from './queue-state.ts';
import { serveAfter } from './serve-queues.ts';

/** What an endpoint showed is forgotten when it was idle for so long. */
const KEPT_IDLE_MS = 60_000;

/** An attempt that lasts makes its endpoint a slow one before it ends; its fast queues are emptied. */
export function findSlow(state: QueueState): void {
  const nowMs = state.busyMs();
  for (const running of state.requests) {
    if (nowMs - (running.begunMs ?? nowMs) < SLOW_MS) break;
    if (!running.isOverdue) markOverdue(state, running);
  }
}

function markOverdue(state: QueueState, running: Running): void {
  const { endpoint, lane } = running;
  running.isOverdue = true;
  endpoint.overdue += 1;
  if (lane !== 'slow') state.stuck += 1;
  serveAfter(state, endpoint);
}

export function forgetIdle(state: QueueState): void {
  const nowMs = state.monotonicMs();
  for (const endpoint of state.endpoints.values()) {
    if (isForgettable(endpoint, nowMs)) state.endpoints.delete(endpoint.webhookId);
  }
}

function isForgettable(endpoint: Known, nowMs: number): boolean {
  const { holdUntilMs, nextTurnMs, lastEndMs } = endpoint;
  if (!isIdle(endpoint) || isSlow(endpoint, nowMs)) return false;
  return Math.max(holdUntilMs, nextTurnMs, lastEndMs + KEPT_IDLE_MS) <= nowMs;
}

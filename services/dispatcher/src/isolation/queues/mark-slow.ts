import { isOverdue } from '../endpoint/when-endpoint-is-slow.ts';
import type { QueueState, RunningAttempt } from './queue-state.ts';
import { reschedule } from './serve-queues.ts';
import { countSlowFast } from './take-place.ts';

/**
 * Marks the attempts that are overdue, which makes their endpoints slow and empties the fast queues of
 * those.
 */
export function markSlow(state: QueueState): void {
  const nowMs = state.stallFreeMs();
  // In the order in which they started: the first one that is not overdue ends the search.
  for (const attempt of state.requests) {
    if (!isOverdue(nowMs - (attempt.startedStallFreeMs ?? nowMs))) break;
    if (!attempt.isOverdue && !attempt.isOfFormerUrl) markOverdue(state, attempt);
  }
}

function markOverdue(state: QueueState, attempt: RunningAttempt): void {
  const { endpoint, queue } = attempt;
  attempt.isOverdue = true;
  endpoint.overdue += 1;
  if (queue !== 'slow') countSlowFast(state, attempt);
  reschedule(state, endpoint);
}

import type { EndpointView, QueueKind } from './views.ts';

/*
 * A free place of the dispatcher goes to the company that has been without one for longest, then to
 * the webhook of that company (createPlaceOrder in platform/async/queues/place-order.ts). Which queue of that
 * webhook goes next is decided here.
 */

/** While first attempts and retries of an endpoint both wait, one place in four goes to a retry. */
const RETRY_EVERY = 4;

const FIRST_BEFORE_RETRY: readonly QueueKind[] = ['first', 'retry'];
const RETRY_BEFORE_FIRST: readonly QueueKind[] = ['retry', 'first'];

/** Returns the order of the two fast queues for the `choice`-th choice between them. */
export function fastQueuesInOrder(choice: number): readonly QueueKind[] {
  return choice % RETRY_EVERY === 0 ? RETRY_BEFORE_FIRST : FIRST_BEFORE_RETRY;
}

/**
 * Returns whether the endpoint has a free place for an attempt of this queue. Retries take at most
 * half of the places. The slow lane is guaranteed a quarter, so that no queue has to wait until
 * another one is empty.
 */
export function hasEndpointPlace(
  queue: QueueKind,
  {
    running,
    waitingSlow,
    wasSlowLast,
    concurrency,
  }: Pick<EndpointView, 'running' | 'waitingSlow' | 'wasSlowLast' | 'concurrency'>,
): boolean {
  const fast = running.first + running.retry;
  if (fast + running.slow >= concurrency) return false;
  if (queue === 'slow') return true;
  if (queue === 'retry' && running.retry >= Math.ceil(concurrency / 2)) return false;
  return waitingSlow === 0 || fast < concurrency - reservedForSlow(concurrency, wasSlowLast);
}

/** With a single place, the slow lane and the fast queues alternate. */
function reservedForSlow(concurrency: number, wasSlowLast: boolean): number {
  if (concurrency === 1) return wasSlowLast ? 0 : 1;
  return Math.max(1, Math.floor(concurrency / 4));
}

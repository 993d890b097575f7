import { type AuditedDelivery, isSuccess } from './deliveries.ts';
import type { Evidence } from './evidence.ts';

/** What the API shows of a delivery and the receiver does not confirm; null when they agree. */
export function stateProblem(
  { key, sent, endpoint, arrivals }: AuditedDelivery,
  { shown, refusalsOf, delaysMs }: Evidence,
): string | null {
  const state = shown.get(key);
  if (!state) return `${key}: the API does not show it`;
  const wanted = wantedStatus(arrivals.some(isSuccess), refusalsOf(sent.n, endpoint));
  if (state.status !== wanted) return `${key}: ${state.status} instead of ${wanted}`;
  if (state.attemptCount > arrivals.length) {
    return `${key}: ${state.attemptCount} attempts, ${arrivals.length} requests`;
  }
  const isShort = wanted === 'exhausted' && state.attemptCount !== delaysMs.length + 1;
  return isShort ? `${key}: exhausted after ${state.attemptCount} attempts` : null;
}

function wantedStatus(isReceived: boolean, refusals: number): string {
  if (isReceived) return 'delivered';
  return refusals === Infinity ? 'exhausted' : 'delivered';
}

import type { Arrival, RecordedAttempt } from './evidence.ts';

/** Two processes of one machine read the clock in whole milliseconds. */
const ROUNDING_MS = 2;

/**
 * Returns the requests that no recorded attempt has made: an attempt begins before its request arrives, and ends
 * after the response. Returns null when an attempt has no request: the clocks differ then, and the two cannot be matched.
 */
export function unrecordedAmong(
  arrivals: readonly Arrival[],
  recorded: readonly RecordedAttempt[],
): Arrival[] | null {
  if (recorded.length === 0) return null;
  const left = [...arrivals];
  for (const attempt of recorded) {
    const index = left.findIndex((arrival) => isRequestOf(arrival, attempt));
    if (index === -1) return null;
    left.splice(index, 1);
  }
  return left;
}

function isRequestOf(
  { atMs }: Pick<Arrival, 'atMs'>,
  { startedAtMs, endedAtMs }: RecordedAttempt,
): boolean {
  return atMs >= startedAtMs - ROUNDING_MS && atMs <= endedAtMs + ROUNDING_MS;
}

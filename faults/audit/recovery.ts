import type { AuditedDelivery } from './deliveries.ts';

/** A delivery that waits longer than this for its first request counts as lag. */
export const LAG_MS = 2_000;

/** The longest time from the acceptance of a message to its first request at an endpoint, in milliseconds. */
export function longestFirstMs(deliveries: readonly AuditedDelivery[]): number {
  const waits = deliveries.flatMap(({ acceptedAtMs, arrivals: [first] }) =>
    first ? first.atMs - acceptedAtMs : [],
  );
  return waits.reduce((longest, each) => Math.max(longest, each), 0);
}

/**
 * How long after the end of the fault some delivery still had to wait longer than two seconds for its first request, in
 * milliseconds; null when one of them never came.
 */
export function recoveredAfterMs(
  deliveries: readonly AuditedDelivery[],
  endedAtMs: number,
): number | null {
  let lastMs = endedAtMs;
  for (const { acceptedAtMs, arrivals } of deliveries) {
    const [first] = arrivals;
    if (!first) return null;
    if (first.atMs - acceptedAtMs > LAG_MS) lastMs = Math.max(lastMs, first.atMs);
  }
  return lastMs - endedAtMs;
}

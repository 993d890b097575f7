import type { AuditedDelivery } from './deliveries.ts';
import type { Evidence } from './evidence.ts';

/** Two clocks of one machine read in milliseconds. */
const ROUNDING_MS = 2;

/**
 * Whether a retry came before its delay had passed. The delay counts from the end of the failed attempt, which is not
 * before our answer. With more requests than recorded attempts only the recorded waits can tell.
 */
export function hasEarlyRetry(delivery: AuditedDelivery, evidence: Evidence): boolean {
  const { delaysMs } = evidence;
  return waitsOf(delivery, evidence).some(
    (waitMs, index) => waitMs < (delaysMs[index] ?? 0) - ROUNDING_MS,
  );
}

function waitsOf(
  delivery: AuditedDelivery,
  { shown, waits, hasClockJumps }: Evidence,
): readonly number[] {
  const { key, arrivals } = delivery;
  const recorded = waits.get(key) ?? [];
  const isExact = (shown.get(key)?.attemptCount ?? arrivals.length) === arrivals.length;
  if (!isExact) return recorded;
  const passed = waitsBetween(delivery);
  if (!hasClockJumps) return passed;
  return passed.map((ms, index) => Math.max(ms, recorded[index] ?? 0));
}

function waitsBetween({ arrivals }: AuditedDelivery): number[] {
  return arrivals.slice(1).map(({ atMs }, index) => atMs - (arrivals[index]?.answeredAtMs ?? 0));
}

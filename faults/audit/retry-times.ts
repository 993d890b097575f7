import type { AuditedDelivery } from './deliveries.ts';
import type { Arrival, Evidence, RecordedAttempt } from './evidence.ts';

/** Two processes of one machine read the clock in whole milliseconds. */
const ROUNDING_MS = 2;

/**
 * Whether a retry came before its delay had passed. The delay counts from the end of the failed attempt, which is not
 * before the response of the endpoint. With more requests than recorded attempts only the recorded times count.
 */
export function hasEarlyRetry(delivery: AuditedDelivery, evidence: Evidence): boolean {
  const { delaysMs } = evidence;
  return waitsOf(delivery, evidence).some(
    (waitMs, index) => waitMs < (delaysMs[index] ?? 0) - ROUNDING_MS,
  );
}

/** How much longer than its delay a retry waited, at most, in milliseconds; 0 without retries. */
export function latestRetryMs(deliveries: readonly AuditedDelivery[], evidence: Evidence): number {
  const { delaysMs } = evidence;
  const late = deliveries.flatMap((each) =>
    waitsOf(each, evidence).map((waitMs, index) => waitMs - (delaysMs[index] ?? waitMs)),
  );
  return late.reduce((latest, each) => Math.max(latest, each), 0);
}

function waitsOf(
  delivery: AuditedDelivery,
  { shown, recorded, hasClockJumps }: Evidence,
): readonly number[] {
  const { key, arrivals } = delivery;
  const recordedWaits = waitsBetween(recorded.get(key) ?? []);
  const isExact = (shown.get(key)?.attemptCount ?? arrivals.length) === arrivals.length;
  if (!isExact) return recordedWaits;
  const passed = waitsBetween(arrivals.map(asAttempt));
  if (!hasClockJumps) return passed;
  return passed.map((ms, index) => Math.max(ms, recordedWaits[index] ?? 0));
}

function asAttempt({ atMs, answeredAtMs }: Arrival): RecordedAttempt {
  return { startedAtMs: atMs, endedAtMs: answeredAtMs };
}

/** From the end of each to the beginning of the next. */
function waitsBetween(attempts: readonly RecordedAttempt[]): number[] {
  return attempts
    .slice(1)
    .map(({ startedAtMs }, index) => startedAtMs - (attempts[index]?.endedAtMs ?? 0));
}

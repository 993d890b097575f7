import type { Outcome } from '@posthorn/domain/outcome.ts';

/**
 * A circuit opens when more than half of the attempts of the last two minutes failed, and there were
 * at least ten. The rule is checked at each failure, by opossum (circuit.ts). What counts as an
 * attempt and as a failure is decided by `countsAsFailure`; successes from before the first failure
 * are counted as far as `seededSuccesses` says.
 */
export const OPENS_WHEN = {
  windowMs: 120_000,
  /** The window moves on by one bucket at a time. */
  buckets: 4,
  minAttempts: 10,
  failedAbovePercent: 50,
};

/** What an attempt showed of its endpoint. */
export interface CircuitReport {
  outcome: Outcome;
  /** It said when to come again: a 429 or 503 with a Retry-After above 0. */
  asksForHold: boolean;
  /** Attempts of its endpoint that succeeded in the last second or two before it ended. */
  recentSuccesses: number;
}

const FAILURES: ReadonlySet<Outcome> = new Set<Outcome>([
  'timeout',
  'http_5xx',
  'http_429',
  'dns_error',
  'connect_error',
  'tls_error',
]);

/**
 * Returns whether the attempt counts as failed; null when it does not count at all, because nothing
 * was sent. An endpoint that rejects or redirects what it gets is up. So is one that asks for a hold,
 * and it is given that hold: otherwise a receiver that takes 300/s and refuses the rest would be left
 * alone for 30 s by its circuit instead of one second.
 */
export function countsAsFailure({ outcome, asksForHold }: CircuitReport): boolean | null {
  if (outcome === 'aborted' || outcome === 'token_failed') return null;
  return FAILURES.has(outcome) && !asksForHold;
}

const MAX_SEEDED = 200;

/**
 * Returns how many successes a circuit starts with. A circuit is created at the first failure, so
 * without them 20 broken connections among 1,000 attempts would open it.
 */
export function seededSuccesses({ recentSuccesses }: CircuitReport): number {
  return Math.min(recentSuccesses, MAX_SEEDED);
}

import type { Outcome, Trigger } from '@posthorn/domain/delivery/delivery.ts';
import type { Circuit, Probe } from './circuits.ts';
import type { CircuitView } from './gate.ts';

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

/** Why an attempt cannot be made now. */
export interface CircuitBlock {
  /** When to come again, in milliseconds since 1970. */
  untilMs: number;
  /** The probe that is under way; null when the circuit waits for the time of its next one. */
  probe: Probe | null;
}

/**
 * For how long a circuit must have been open before an attempt of this trigger may be its probe
 * ahead of time. Somebody waits for the result of a test. Resends come by the thousand, and would use
 * up their attempts on a dead endpoint.
 */
const EARLY_PROBE_AFTER_MS: Record<Trigger, number> = {
  test: 0,
  resend: 5_000,
  first: Infinity,
  retry: Infinity,
};

/**
 * Returns null when the attempt may be made now: the circuit is closed, or the attempt may be its
 * probe. `resetMs` is how long an open circuit waits for its probe.
 */
export function blockOf(
  circuit: Circuit | undefined,
  trigger: Trigger,
  { nowMs, resetMs }: { nowMs: () => number; resetMs: number },
): CircuitBlock | null {
  if (!circuit || circuit.state() === 'closed') return null;
  const probe = circuit.probe();
  if (probe) return { untilMs: nowMs() + resetMs, probe };
  const openForMs = nowMs() - (circuit.probeAtMs() - resetMs);
  const mayProbe = circuit.state() === 'half_open' || openForMs >= EARLY_PROBE_AFTER_MS[trigger];
  return mayProbe ? null : { untilMs: circuit.probeAtMs(), probe: null };
}

/** After this time the attempt is made whatever the circuit says, so that every delivery ends. */
const MADE_ANYWAY_AFTER_MS = 12 * 3_600_000;
/** Each deferral is this many times as long as the attempt has waited so far, within those twelve hours. */
const GROWTH = 3;

export const CLOSED: CircuitView = { kind: 'closed' };

/**
 * Returns the circuit as the gate sees it for one attempt, with the time for which it defers that
 * attempt. The time grows, so that the backlog of a dead endpoint is copied a few times a day and not
 * all the time. `deferredSinceMs` is null for an attempt that no circuit has deferred yet. Times are
 * milliseconds since 1970.
 */
export function circuitViewOf(
  block: CircuitBlock | null,
  deferredSinceMs: number | null,
  nowMs: number,
): CircuitView {
  const waitedMs = nowMs - (deferredSinceMs ?? nowMs);
  if (!block || waitedMs >= MADE_ANYWAY_AFTER_MS) return CLOSED;
  const deferForMs = Math.max(
    block.untilMs - nowMs,
    Math.min(waitedMs * GROWTH, MADE_ANYWAY_AFTER_MS - waitedMs),
  );
  return block.probe
    ? { kind: 'probing', sinceMs: nowMs - block.probe.sinceMs, deferForMs }
    : { kind: 'open', deferForMs };
}

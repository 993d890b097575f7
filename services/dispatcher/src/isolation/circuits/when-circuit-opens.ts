import type { Trigger } from '@posthorn/domain/delivery.ts';
import type { Outcome } from '@posthorn/domain/outcome.ts';
import type { Circuit, Probe } from './circuit.ts';

/** What stands against an attempt. */
export interface Obstacle {
  /** When to come again, in milliseconds since 1970. */
  untilMs: number;
  /** The attempt that finds out just now; null when the circuit waits for its time. */
  probe: Probe | null;
}

/** Somebody waits for a test; resends come by thousands, and would burn themselves on a dead endpoint. */
const EARLY_PROBE_AFTER_MS: Record<Trigger, number> = {
  test: 0,
  resend: 5_000,
  first: Infinity,
  retry: Infinity,
};

/** Null when the attempt may be made now. `resetMs` is how long an open circuit waits for its probe. */
export function obstacleOf(
  circuit: Circuit | undefined,
  trigger: Trigger,
  { nowMs, resetMs }: { nowMs: () => number; resetMs: number },
): Obstacle | null {
  if (!circuit || circuit.state() === 'closed') return null;
  const probe = circuit.probe();
  if (probe) return { untilMs: nowMs() + resetMs, probe };
  const openForMs = nowMs() - (circuit.probeAtMs() - resetMs);
  const mayProbe = circuit.state() === 'half_open' || openForMs >= EARLY_PROBE_AFTER_MS[trigger];
  return mayProbe ? null : { untilMs: circuit.probeAtMs(), probe: null };
}

/** What an attempt showed of its endpoint. */
export interface Shown {
  outcome: Outcome;
  /** It said when to come again: a 429 or 503 with Retry-After. */
  asksForPause: boolean;
  /** Attempts of its endpoint that succeeded in the second or two before it ended. */
  succeededLately: number;
}

const FAILURES = new Set<Outcome>([
  ...(['timeout', 'http_5xx', 'http_429', 'dns_error', 'connect_error', 'tls_error'] as const),
]);

/**
 * Null when nothing was sent. An endpoint that refuses or redirects what it gets is there. One that
 * asks for a pause is given it: a receiver that takes 300/s and refuses the rest would be left alone
 * for 30 s by its circuit, instead of one.
 */
export function hasFailedBy({ outcome, asksForPause }: Shown): boolean | null {
  if (outcome === 'aborted') return null;
  return FAILURES.has(outcome) && !asksForPause;
}

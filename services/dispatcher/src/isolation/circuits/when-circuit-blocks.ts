import type { Trigger } from '@posthorn/domain/message/delivery.ts';
import type { Circuit, Probe } from './circuit.ts';

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

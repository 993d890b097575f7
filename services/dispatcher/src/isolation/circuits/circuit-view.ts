import type { Obstacle } from './when-circuit-opens.ts';
import type { CircuitView } from '../gate/views.ts';

/** After so long the attempt is made whatever the circuit says: a delivery must come to its end. */
const MADE_ANYWAY_AFTER_MS = 12 * 3_600_000;
/** An attempt that has waited comes back after this many times its wait, within those twelve hours. */
const GROWTH = 3;

export const CLOSED: CircuitView = { kind: 'closed' };

/**
 * What stands against an attempt, and for how long it is deferred: each time for longer, so that a
 * dead endpoint with a large backlog stirs the backlog a few times a day and not all the time.
 * `deferredSinceMs` is null for an attempt that no circuit has deferred yet. Milliseconds since 1970.
 */
export function circuitViewOf(
  obstacle: Obstacle | null,
  deferredSinceMs: number | null,
  nowMs: number,
): CircuitView {
  const waitedMs = nowMs - (deferredSinceMs ?? nowMs);
  if (!obstacle || waitedMs >= MADE_ANYWAY_AFTER_MS) return CLOSED;
  const deferForMs = Math.max(
    obstacle.untilMs - nowMs,
    Math.min(waitedMs * GROWTH, MADE_ANYWAY_AFTER_MS - waitedMs),
  );
  return obstacle.probe
    ? { kind: 'probing', sinceMs: nowMs - obstacle.probe.sinceMs, deferForMs }
    : { kind: 'open', deferForMs };
}

import type { CircuitView } from '../gate/views.ts';
import type { CircuitBlock } from './when-circuit-blocks.ts';

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

import type { Excuse } from '../audit/evidence.ts';

/**
 * An attempt is recorded some 25 ms after its answer (docs/decisions/0016-the-delivery-is-its-done-mark.md). On a machine
 * of two cores that also runs the stores, the write itself took up to half a second.
 */
const RECORDED_WITHIN_MS = 600;

/** What was under way when a process was lost may be sent again. */
export function inFlightAt(atMs: number, event: string): Excuse {
  return { reason: `in flight at ${event}`, fromMs: atMs - RECORDED_WITHIN_MS, toMs: atMs };
}

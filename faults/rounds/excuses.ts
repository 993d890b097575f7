import type { Excuse } from '../audit/evidence.ts';
import type { Killed } from '../stack/fleet.ts';

/**
 * An attempt is recorded 40 ms and a write after its answer (docs/decisions/0016-the-delivery-is-its-done-mark.md). On
 * a machine of two cores that also runs the stores, the write itself took up to half a second.
 */
const RECORDED_WITHIN_MS = 600;

/** How long the suite may take to read a request that has arrived, when the machine loses a third of its CPU time. */
const READ_WITHIN_MS = 100;

/** Attempts that were in flight when a process was killed, suspended or cut off may be sent again. */
export function inFlightAt({ sinceMs, untilMs }: Killed, event: string): Excuse {
  return {
    reason: `in flight at ${event}`,
    fromMs: sinceMs - RECORDED_WITHIN_MS,
    toMs: untilMs + READ_WITHIN_MS,
  };
}

import type { Excuse } from '../audit/evidence.ts';
import type { Killed } from '../stack/fleet.ts';

/**
 * An attempt is recorded some 25 ms after its answer (docs/decisions/0016-the-delivery-is-its-done-mark.md). On a machine
 * of two cores that also runs the stores, the write itself took up to half a second.
 */
const RECORDED_WITHIN_MS = 600;

/** One turn of the event loop that reads requests, on a machine whose cores are taken away for a third of the time. */
const READ_WITHIN_MS = 100;

/** What was under way when a process was lost may be sent again. */
export function inFlightAt({ sinceMs, untilMs }: Killed, event: string): Excuse {
  return {
    reason: `in flight at ${event}`,
    fromMs: sinceMs - RECORDED_WITHIN_MS,
    toMs: untilMs + READ_WITHIN_MS,
  };
}

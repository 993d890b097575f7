import type { Arrivals } from '../load/arrivals.ts';
import type { LoadRecord } from '../load/loops.ts';
import type { UsageWatch } from '../usage/watch-usage.ts';
import { phaseFigures, type PhaseFigures } from './phase-figures.ts';
import { type Spending, watchSpending } from './spending.ts';
import { untilArrived } from './until-arrived.ts';

/** The spending covers the time until the last message arrived. */
export interface Phase extends PhaseFigures, Spending {
  name: string;
}

export interface PhaseSpec {
  name: string;
  /** Which endpoints respond, so that their messages must arrive; all by default. */
  isCounted?: (endpoint: number) => boolean;
  /** How long to wait for the rest after the load, at most; 180,000 by default. */
  patienceMs?: number;
  load: () => Promise<LoadRecord>;
}

export type MeasurePhase = (spec: PhaseSpec) => Promise<Phase>;

interface PhaseDeps {
  arrivals: Arrivals;
  usage: UsageWatch;
  signal: AbortSignal;
  log: (line: string) => void;
}

/**
 * Longer than the first retry (5 s) and its deadline (15 s): what one retry delivers is late, not
 * missing.
 */
const QUIET_MS = 25_000;
const PATIENCE_MS = 180_000;

export function createPhases({ arrivals, usage, signal, log }: PhaseDeps): MeasurePhase {
  return async ({ name, load, isCounted = () => true, patienceMs = PATIENCE_MS }) => {
    log(`Measuring: ${name}`);
    arrivals.forgetAll();
    const endSpending = watchSpending(usage);
    const record = await load();
    const expected = record.sent.filter(({ endpoint }) => isCounted(endpoint));
    const missing = missingCounter(expected, arrivals);
    await untilArrived(missing, { quietMs: QUIET_MS, totalMs: patienceMs, signal });
    const spending = endSpending(record.sent.length);
    return { name, ...phaseFigures(record, arrivals, isCounted), ...spending };
  };
}

/** Checks only those again that were missing the last time. */
function missingCounter(expected: LoadRecord['sent'], arrivals: Arrivals): () => number {
  let missing = expected;
  return () => {
    missing = missing.filter(({ id, endpoint }) => arrivals.count(id, endpoint) === 0);
    return missing.length;
  };
}

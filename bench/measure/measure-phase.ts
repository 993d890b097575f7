import type { Arrivals } from '../load/arrivals.ts';
import type { LoadRecord } from '../load/loops.ts';
import type { UsageWatch } from '../stack/watch-usage.ts';
import { phaseFigures, type PhaseFigures } from './phase-figures.ts';
import { type Spending, watchSpending } from './spending.ts';
import { untilArrived } from './until-arrived.ts';

/** The spending is that until the last message had arrived. */
export interface Phase extends PhaseFigures, Spending {
  name: string;
}

export interface PhaseSpec {
  name: string;
  /** Which endpoints answer, so that their messages must arrive; all unless given. */
  isCounted?: (endpoint: number) => boolean;
  /** How long to wait for the rest after the load, at most; 180,000 unless told. */
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

/** Above the first retry (5 s) and its deadline (15 s): what one retry saves is late, not missing. */
const QUIET_MS = 25_000;
const PATIENCE_MS = 180_000;

export function createPhases({ arrivals, usage, signal, log }: PhaseDeps): MeasurePhase {
  return async ({ name, load, isCounted = () => true, patienceMs = PATIENCE_MS }) => {
    log(`Measuring: ${name}`);
    arrivals.forgetAll();
    const endSpending = watchSpending(usage);
    const record = await load();
    const owed = record.sent.filter(({ endpoint }) => isCounted(endpoint));
    const missing = missingCounter(owed, arrivals);
    await untilArrived(missing, { quietMs: QUIET_MS, totalMs: patienceMs, signal });
    const spending = endSpending(record.sent.length);
    return { name, ...phaseFigures(record, arrivals, isCounted), ...spending };
  };
}

/** Looks again only at those that were missing the last time. */
function missingCounter(owed: LoadRecord['sent'], arrivals: Arrivals): () => number {
  let missing = owed;
  return () => {
    missing = missing.filter(({ id, endpoint }) => arrivals.count(id, endpoint) === 0);
    return missing.length;
  };
}

import { setTimeout as wait } from 'node:timers/promises';
import type { Arrivals } from '../load/arrivals.ts';
import type { LoadRecord, Sent } from '../load/loops.ts';
import type { UsageWatch } from './watch-usage.ts';
import { type Spending, watchSpending } from './spending.ts';
import { type Percentiles, percentilesOf, rounded, type Second, secondsOf } from './figures.ts';

/** The spending covers the time until the last message arrived. */
export interface Phase extends PhaseFigures, Spending {
  name: string;
}

export interface PhaseSpec {
  name: string;
  /** Which endpoints respond, so that their messages must arrive; all by default. */
  isCounted?: (endpoint: number) => boolean;
  /** How long to wait for late arrivals after the load, at most; 180,000 by default. */
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
 * Longer than the first retry (5 s) and its deadline (15 s): a delivery by one retry is late, not
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

/** Checks again only the messages that were missing the last time. */
function missingCounter(expected: LoadRecord['sent'], arrivals: Arrivals): () => number {
  let missing = expected;
  return () => {
    missing = missing.filter(({ id, endpoint }) => arrivals.count(id, endpoint) === 0);
    return missing.length;
  };
}

interface PhaseFigures {
  /** From the start to the last response. */
  seconds: number;
  accepted: number;
  refused: Record<string, number>;
  acceptedPerSecond: number;
  /** Arrivals within these seconds; lower than accepted when a backlog grew. */
  deliveredPerSecond: number;
  /** Accepted, but not arrived when the wait ended. */
  missing: number;
  /** Arrivals beyond the first of a message. */
  duplicates: number;
  acceptMs: Percentiles;
  endToEndMs: Percentiles;
  /** How late the generator itself sent; contained in the latencies. */
  generatorLateMs: Percentiles;
  /**
   * Messages to endpoints that hang or fail. Of the figures above, only `acceptedPerSecond` contains
   * them.
   */
  toFailing: { accepted: number; attempted: number };
  timeline: Second[];
}

/** Counts the messages to endpoints that respond; the others are reported in `toFailing`. */
export function phaseFigures(
  { startedAtMs, endedAtMs, sent, refused }: LoadRecord,
  arrivals: Arrivals,
  isCounted: (endpoint: number) => boolean,
): PhaseFigures {
  const seconds = (endedAtMs - startedAtMs) / 1_000;
  const counted = sent.filter(({ endpoint }) => isCounted(endpoint));
  const toFailing = sent.filter(({ endpoint }) => !isCounted(endpoint));
  const timelines = counted.map((each) => ({ ...each, arrivedAtMs: arrivedAt(each, arrivals) }));
  const arrived = timelines.flatMap(({ arrivedAtMs, intendedAtMs }) =>
    arrivedAtMs === undefined ? [] : [{ arrivedAtMs, endToEndMs: arrivedAtMs - intendedAtMs }],
  );
  const inTime = arrived.filter(({ arrivedAtMs }) => arrivedAtMs <= endedAtMs);
  return {
    seconds: rounded(seconds, 2),
    accepted: counted.length,
    refused,
    acceptedPerSecond: rounded(sent.length / seconds),
    deliveredPerSecond: rounded(inTime.length / seconds),
    missing: counted.length - arrived.length,
    duplicates: duplicatesOf(counted, arrivals),
    acceptMs: percentilesOf(counted.map((each) => each.acceptedAtMs - each.intendedAtMs)),
    endToEndMs: percentilesOf(arrived.map(({ endToEndMs }) => endToEndMs)),
    generatorLateMs: percentilesOf(sent.map((each) => each.sentAtMs - each.intendedAtMs)),
    toFailing: { accepted: toFailing.length, attempted: attemptedOf(toFailing, arrivals) },
    timeline: secondsOf(timelines, startedAtMs),
  };
}

function arrivedAt({ id, endpoint }: Sent, arrivals: Arrivals): number | undefined {
  return arrivals.firstAtMs(id, endpoint);
}

function attemptedOf(sent: readonly Sent[], arrivals: Arrivals): number {
  return sent.filter((each) => arrivedAt(each, arrivals) !== undefined).length;
}

function duplicatesOf(sent: readonly Sent[], arrivals: Arrivals): number {
  return sent.reduce(
    (sum, { id, endpoint }) => sum + Math.max(0, arrivals.count(id, endpoint) - 1),
    0,
  );
}

const CHECK_EVERY_MS = 50;

interface Patience {
  /** Gives up after this long without an arrival. */
  quietMs: number;
  /** Gives up after this long in any case. */
  totalMs: number;
  signal: AbortSignal;
}

/** Waits until everything has arrived. A backlog may take long; a time without arrivals ends the wait. */
export async function untilArrived(
  missing: () => number,
  { quietMs, totalMs, signal }: Patience,
): Promise<void> {
  const endMs = performance.now() + totalMs;
  let lastMissing = Infinity;
  let lastChangeMs = performance.now();
  for (;;) {
    const nowMs = performance.now();
    const nowMissing = missing();
    if (nowMissing === 0 || signal.aborted) return;
    if (nowMissing < lastMissing) [lastMissing, lastChangeMs] = [nowMissing, nowMs];
    if (nowMs - lastChangeMs > quietMs || nowMs > endMs) return;
    await wait(CHECK_EVERY_MS);
  }
}

import { setTimeout as wait } from 'node:timers/promises';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import type { Arrivals } from '../load/arrivals.ts';
import type { LoadRecord } from '../load/loops.ts';
import type { UsageWatch } from './watch-usage.ts';
import { type Spending, watchSpending } from './spending.ts';
import { percentilesOf, rounded, secondsOf } from './figures.ts';

/** The spending covers the time until the last message arrived. */
export type Phase = { name: string } & ReturnType<typeof phaseFigures> & Spending;

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

/** Longer than the first retry (5 s) and its deadline (15 s): a delivery by one retry is late, not missing. */
const QUIET_MS = 25_000;
const PATIENCE_MS = 180_000;

export function createPhases({ arrivals, usage, signal, log }: PhaseDeps): MeasurePhase {
  return async ({ name, load, isCounted = () => true, patienceMs = PATIENCE_MS }) => {
    log(`Measuring: ${name}`);
    arrivals.forgetAll();
    const endSpending = watchSpending(usage);
    const record = await load();
    let missing = record.sent.filter(({ endpoint }) => isCounted(endpoint));
    /** Checks again only the messages that were missing the last time. */
    const countMissing = (): number => {
      missing = missing.filter(({ id, endpoint }) => arrivals.count(id, endpoint) === 0);
      return missing.length;
    };
    await untilArrived(countMissing, { quietMs: QUIET_MS, totalMs: patienceMs, signal });
    const spending = endSpending(record.sent.length);
    return { name, ...phaseFigures(record, arrivals, isCounted), ...spending };
  };
}

/** Counts the messages to endpoints that respond; the others are reported in `toFailing`. */
export function phaseFigures(
  { startedAtMs, endedAtMs, sent, refused }: LoadRecord,
  arrivals: Arrivals,
  isCounted: (endpoint: number) => boolean,
) {
  const seconds = (endedAtMs - startedAtMs) / 1_000;
  const all = sent.map(({ id, endpoint, ...times }) => ({
    ...times,
    isCounted: isCounted(endpoint),
    arrivedAtMs: arrivals.firstAtMs(id, endpoint),
    copies: Math.max(0, arrivals.count(id, endpoint) - 1),
  }));
  const counted = all.filter((each) => each.isCounted);
  const toFailing = all.filter((each) => !each.isCounted);
  const arrived = counted.flatMap(({ arrivedAtMs, intendedAtMs }) =>
    arrivedAtMs === undefined ? [] : [{ arrivedAtMs, endToEndMs: arrivedAtMs - intendedAtMs }],
  );
  const inTime = arrived.filter(({ arrivedAtMs }) => arrivedAtMs <= endedAtMs);
  const attempted = toFailing.filter(({ arrivedAtMs }) => arrivedAtMs !== undefined).length;
  return {
    /** From the start to the last response. */
    seconds: rounded(seconds, 2),
    accepted: counted.length,
    refused,
    /** With the messages to endpoints that hang or fail, which no other figure contains. */
    acceptedPerSecond: rounded(sent.length / seconds),
    /** Arrivals within these seconds; lower than accepted when a backlog grew. */
    deliveredPerSecond: rounded(inTime.length / seconds),
    /** Accepted, but not arrived when the wait ended. */
    missing: counted.length - arrived.length,
    /** Arrivals beyond the first of a message. */
    duplicates: counted.reduce((sum, { copies }) => sum + copies, 0),
    acceptMs: percentilesOf(counted.map((each) => each.acceptedAtMs - each.intendedAtMs)),
    endToEndMs: percentilesOf(arrived.map(({ endToEndMs }) => endToEndMs)),
    /** How late the generator itself sent; contained in the latencies. */
    generatorLateMs: percentilesOf(sent.map((each) => each.sentAtMs - each.intendedAtMs)),
    toFailing: { accepted: toFailing.length, attempted },
    timeline: secondsOf(counted, startedAtMs),
  };
}

const CHECK_EVERY_MS = 50;

/**
 * Waits until everything has arrived. A backlog may take long, up to `totalMs`; a time of `quietMs` without arrivals ends the
 * wait.
 */
export async function untilArrived(
  missing: () => number,
  { quietMs, totalMs, signal }: { quietMs: number; totalMs: number; signal: AbortSignal },
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

/** Resident memory of gateway, dispatcher and retry service at the end of a phase, in MiB. */
export const servicesMiB = ({ parts }: Phase): number =>
  SERVICES.reduce((sum, each) => sum + (parts[each]?.residentMiB ?? 0), 0);

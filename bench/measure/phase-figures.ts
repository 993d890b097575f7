import type { Arrivals } from '../load/arrivals.ts';
import type { LoadRecord, Sent } from '../load/loops.ts';
import { type Percentiles, percentilesOf, rounded } from '../figures/percentiles.ts';
import { type Second, secondsOf } from '../figures/seconds.ts';

export interface PhaseFigures {
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

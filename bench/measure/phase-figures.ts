import type { Arrivals } from '../load/arrivals.ts';
import type { LoadRecord, Sent } from '../load/loops.ts';
import { type Percentiles, percentilesOf, rounded } from './percentiles.ts';
import { type Second, secondsOf } from './seconds.ts';

export interface PhaseFigures {
  /** From the start to the last answer. */
  seconds: number;
  accepted: number;
  refused: Record<string, number>;
  acceptedPerSecond: number;
  /** Arrivals within these seconds: lower than accepted when a backlog grew. */
  deliveredPerSecond: number;
  /** Accepted, and not arrived when waiting for it was given up. */
  missing: number;
  /** Arrivals beyond the first of a message. */
  duplicates: number;
  acceptMs: Percentiles;
  endToEndMs: Percentiles;
  /** How late the generator itself sent; contained in the latencies. */
  generatorLateMs: Percentiles;
  /** Messages to endpoints that hang or fail, in none of the figures above but `acceptedPerSecond`. */
  aside: { accepted: number; attempted: number };
  timeline: Second[];
}

/** Counts the messages to endpoints that answer; the rest stand aside. */
export function phaseFigures(
  { startedAtMs, endedAtMs, sent, refused }: LoadRecord,
  arrivals: Arrivals,
  isCounted: (endpoint: number) => boolean,
): PhaseFigures {
  const seconds = (endedAtMs - startedAtMs) / 1_000;
  const counted = sent.filter(({ endpoint }) => isCounted(endpoint));
  const aside = sent.filter(({ endpoint }) => !isCounted(endpoint));
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
    aside: { accepted: aside.length, attempted: attemptedOf(aside, arrivals) },
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

import type { Retry } from '../load/retry-tracker.ts';
import { type Percentiles, percentilesOf } from '../figures/percentiles.ts';
import { secondsOf } from '../figures/seconds.ts';

/** When the retries of one load were released. */
export interface LatenessFigures {
  due: number;
  missing: number;
  /** Releases beyond the first of a retry. */
  duplicates: number;
  /** Released before they were due, by the timestamps of their records. */
  early: number;
  /** From the due time until the timestamp of the released record. */
  releasedAfterMs: Percentiles;
  /** From the due time until the generator had the record: what a dispatcher would see. */
  receivedAfterMs: Percentiles;
  /** From the timestamp until the generator had the record: Kafka and the generator's own reading. */
  readingMs: Percentiles;
  /** From the end of the failed attempt until Kafka had stored the failure. */
  storedAfterMs: Percentiles;
  timeline: LatenessSecond[];
}

/** What happened in one second, and the lateness of the retries that were due in it. */
export interface LatenessSecond {
  second: number;
  released: number;
  received: number;
  releasedAfterMs: Pick<Percentiles, 'p50' | 'p99'>;
  receivedAfterMs: Pick<Percentiles, 'p50' | 'p99'>;
}

export function latenessFigures(retries: readonly Retry[], startedAtMs: number): LatenessFigures {
  const released = retries.flatMap(({ dueAtMs, release }) =>
    release ? [{ dueAtMs, ...release }] : [],
  );
  const stored = retries.flatMap(({ storedAtMs, endedAtMs }) =>
    storedAtMs === null ? [] : [storedAtMs - endedAtMs],
  );
  const releasedAfterMs = released.map(({ releasedAtMs, dueAtMs }) => releasedAtMs - dueAtMs);
  const receivedAfterMs = released.map(({ receivedAtMs, dueAtMs }) => receivedAtMs - dueAtMs);
  return {
    due: retries.length,
    missing: retries.length - released.length,
    duplicates: retries.reduce((sum, { count }) => sum + Math.max(0, count - 1), 0),
    early: releasedAfterMs.filter((lateMs) => lateMs < 0).length,
    releasedAfterMs: percentilesOf(releasedAfterMs),
    receivedAfterMs: percentilesOf(receivedAfterMs),
    readingMs: percentilesOf(released.map((each) => each.receivedAtMs - each.releasedAtMs)),
    storedAfterMs: percentilesOf(stored),
    timeline: timelineOf(released, startedAtMs),
  };
}

interface Released {
  dueAtMs: number;
  releasedAtMs: number;
  receivedAtMs: number;
}

function timelineOf(released: readonly Released[], startedAtMs: number): LatenessSecond[] {
  const timelines = released.map(({ dueAtMs, releasedAtMs, receivedAtMs }) => ({
    intendedAtMs: dueAtMs,
    acceptedAtMs: releasedAtMs,
    arrivedAtMs: receivedAtMs,
  }));
  return secondsOf(timelines, startedAtMs).map((each) => ({
    second: each.second,
    released: each.accepted,
    received: each.delivered,
    releasedAfterMs: each.acceptMs,
    receivedAfterMs: each.endToEndMs,
  }));
}

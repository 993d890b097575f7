import { percentilesOf, secondsOf } from './figures.ts';

/** One failed attempt and the release of its retry; all times in milliseconds since 1970. */
export interface Retry {
  /** When the failed attempt ended. */
  endedAtMs: number;
  /** By the schedule, not by the record. */
  dueAtMs: number;
  /** When Kafka acknowledged the failure; null for one that it refused. */
  storedAtMs: number | null;
  /** Its first release. */
  release: Release | null;
  /** How often it was released. */
  count: number;
}

interface Release {
  /** The timestamp of the record, which its producer sets. */
  releasedAtMs: number;
  /** When the generator had it. */
  receivedAtMs: number;
}

export type RetryTracker = ReturnType<typeof createRetryTracker>;

/** Tracks which retries are expected, and when each was released. */
export function createRetryTracker() {
  const known = new Map<string, Retry>();
  let unexpected = 0;
  let released = 0;
  return {
    expect(messageId: string, times: Pick<Retry, 'endedAtMs' | 'dueAtMs'>): Retry {
      const retry = { ...times, storedAtMs: null, release: null, count: 0 };
      known.set(messageId, retry);
      return retry;
    },
    note(messageId: string, release: Release): void {
      const retry = known.get(messageId);
      if (!retry) {
        unexpected += 1;
        return;
      }
      retry.count += 1;
      if (retry.release) return;
      retry.release = release;
      released += 1;
    },
    missing: () => known.size - released,
    /** Returns the number of releases that were not expected. */
    unexpected: () => unexpected,
    all: () => [...known.values()],
    /** Finished ones would only lengthen garbage collection. */
    forgetAll(): void {
      known.clear();
      released = 0;
    },
  };
}

export function latenessFigures(retries: readonly Retry[], startedAtMs: number) {
  const released = retries.flatMap(({ dueAtMs: intendedAtMs, release }) => {
    if (release === null) return [];
    const { releasedAtMs: acceptedAtMs, receivedAtMs: arrivedAtMs } = release;
    return [{ intendedAtMs, acceptedAtMs, arrivedAtMs }];
  });
  const stored = retries.flatMap(({ storedAtMs, endedAtMs }) =>
    storedAtMs === null ? [] : [storedAtMs - endedAtMs],
  );
  const releasedAfterMs = released.map((each) => each.acceptedAtMs - each.intendedAtMs);
  return {
    due: retries.length,
    missing: retries.length - released.length,
    /** Releases beyond the first of a retry. */
    duplicates: retries.reduce((sum, { count }) => sum + Math.max(0, count - 1), 0),
    /** By the timestamps of their records. */
    early: releasedAfterMs.filter((lateMs) => lateMs < 0).length,
    /** From the due time until the timestamp of the released record. */
    releasedAfterMs: percentilesOf(releasedAfterMs),
    /** From the due time until the generator had the record, as a dispatcher would have it. */
    receivedAfterMs: percentilesOf(released.map((each) => each.arrivedAtMs - each.intendedAtMs)),
    /** Kafka and the generator's own reading. */
    readingMs: percentilesOf(released.map((each) => each.arrivedAtMs - each.acceptedAtMs)),
    /** From the end of the failed attempt until Kafka had stored the failure. */
    storedAfterMs: percentilesOf(stored),
    /** By second: how many were released and received, and the lateness of those that were due in it. */
    timeline: secondsOf(released, startedAtMs).map((each) => ({
      second: each.second,
      released: each.accepted,
      received: each.delivered,
      releasedAfterMs: each.acceptMs,
      receivedAfterMs: each.endToEndMs,
    })),
  };
}

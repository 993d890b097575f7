/** One failed attempt and what became of its retry; all times in milliseconds since 1970. */
export interface Retry {
  /** When the failed attempt ended. */
  endedAtMs: number;
  /** By the schedule, not by the record. */
  dueAtMs: number;
  /** When Kafka acknowledged the failure. */
  storedAtMs: number | null;
  /** Its first release. */
  release: Release | null;
  /** How often it was released. */
  count: number;
}

export interface Release {
  /** The timestamp of the record, which its producer sets. */
  releasedAtMs: number;
  /** When the generator had it. */
  receivedAtMs: number;
}

/** Tracks which retries are expected, and when each was released. */
export interface RetryTracker {
  expect: (messageId: string, times: Pick<Retry, 'endedAtMs' | 'dueAtMs'>) => Retry;
  note: (messageId: string, release: Release) => void;
  missing: () => number;
  /** Returns the number of releases that were not expected. */
  unexpected: () => number;
  all: () => Retry[];
  /** Forgets all retries: finished ones would only lengthen garbage collection. */
  forgetAll: () => void;
}

export function createRetryTracker(): RetryTracker {
  const known = new Map<string, Retry>();
  let unexpected = 0;
  let released = 0;
  return {
    expect(messageId, times) {
      const retry = { ...times, storedAtMs: null, release: null, count: 0 };
      known.set(messageId, retry);
      return retry;
    },
    note(messageId, release) {
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
    unexpected: () => unexpected,
    all: () => [...known.values()],
    forgetAll() {
      known.clear();
      released = 0;
    },
  };
}

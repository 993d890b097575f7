/** One failed attempt and what became of its retry; all times in milliseconds since 1970. */
export interface Retry {
  /** When the attempt that failed had ended. */
  endedAtMs: number;
  /** By the schedule, and not by what a record says. */
  dueAtMs: number;
  /** When Kafka had acknowledged the failure. */
  storedAtMs: number | null;
  /** Of its first release. */
  release: Release | null;
  /** How often it was released. */
  count: number;
}

export interface Release {
  /** The timestamp of the record: when its producer made it. */
  releasedAtMs: number;
  /** When the generator had it. */
  receivedAtMs: number;
}

/** Which retries are owed, and how each was released. */
export interface RetryBook {
  expect: (messageId: string, times: Pick<Retry, 'endedAtMs' | 'dueAtMs'>) => Retry;
  note: (messageId: string, release: Release) => void;
  missing: () => number;
  /** Releases of what nobody expected. */
  strangers: () => number;
  all: () => Retry[];
  /** What was counted only lengthens the pauses of what follows. */
  forgetAll: () => void;
}

export function createRetryBook(): RetryBook {
  const known = new Map<string, Retry>();
  let strangers = 0;
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
        strangers += 1;
        return;
      }
      retry.count += 1;
      if (retry.release) return;
      retry.release = release;
      released += 1;
    },
    missing: () => known.size - released,
    strangers: () => strangers,
    all: () => [...known.values()],
    forgetAll() {
      known.clear();
      released = 0;
    },
  };
}

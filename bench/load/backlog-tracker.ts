/**
 * Tracks which records of a backlog have arrived, with some bytes per message instead of an object per
 * record.
 */
export interface BacklogTracker {
  /** Adds messages that will go to every endpoint, one record each. */
  expect: (messageIds: readonly string[]) => void;
  note: (messageId: string, endpoint: number) => void;
  expected: () => number;
  missing: () => number;
  /** Arrivals beyond the first of a record. */
  duplicates: () => number;
}

/** One bit for each endpoint of a message. */
export const MAX_BACKLOG_ENDPOINTS = 32;

export function createBacklogTracker(endpoints: number): BacklogTracker {
  if (endpoints > MAX_BACKLOG_ENDPOINTS)
    throw new Error(`at most ${MAX_BACKLOG_ENDPOINTS} endpoints`);
  const arrivedBits = new Map<string, number>();
  let arrived = 0;
  let duplicates = 0;
  return {
    expect(messageIds) {
      for (const id of messageIds) arrivedBits.set(id, 0);
    },
    note(messageId, endpoint) {
      const bits = arrivedBits.get(messageId);
      if (bits === undefined) return;
      const bit = 1 << endpoint;
      if ((bits & bit) !== 0) {
        duplicates += 1;
        return;
      }
      arrivedBits.set(messageId, bits | bit);
      arrived += 1;
    },
    expected: () => arrivedBits.size * endpoints,
    missing: () => arrivedBits.size * endpoints - arrived,
    duplicates: () => duplicates,
  };
}

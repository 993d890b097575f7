/** What is in hand of the delay topics, for the question how long the oldest of it is overdue. */
export interface OverdueWatch {
  /** Answers what to call when the record is released or needs no release. */
  begin: (topic: string, dueAtMs: number) => () => void;
  /** Milliseconds since the oldest record in hand was due; 0 when none is. */
  overdueMs: (topic: string, nowMs: number) => number;
}

/**
 * A partition is read in the order in which its records fall due: while we are behind, the oldest
 * one that is not released is in hand.
 */
export function createOverdueWatch(): OverdueWatch {
  const inHand = new Map<string, Set<{ dueAtMs: number }>>();
  return {
    begin(topic, dueAtMs) {
      const ofTopic = inHand.get(topic) ?? new Set();
      const entry = { dueAtMs };
      inHand.set(topic, ofTopic.add(entry));
      return () => ofTopic.delete(entry);
    },
    overdueMs(topic, nowMs) {
      let oldestMs = nowMs;
      for (const { dueAtMs } of inHand.get(topic) ?? []) oldestMs = Math.min(oldestMs, dueAtMs);
      return nowMs - oldestMs;
    },
  };
}

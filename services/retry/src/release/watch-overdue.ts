/** Knows the records of the delay topics that are in memory, and how long the oldest is overdue. */
export interface OverdueWatch {
  /** Adds a record. Returns a function to call when it is released or dropped. */
  begin: (topic: string, dueAtMs: number) => () => void;
  /** Milliseconds since the oldest record of the topic was due; 0 when none is. */
  overdueMs: (topic: string, nowMs: number) => number;
}

/**
 * A partition is read in the order in which its records are due, so the oldest record that is not
 * released is always in memory while the process is behind.
 */
export function createOverdueWatch(): OverdueWatch {
  const byTopic = new Map<string, Set<{ dueAtMs: number }>>();
  return {
    begin(topic, dueAtMs) {
      const entries = byTopic.get(topic) ?? new Set();
      const entry = { dueAtMs };
      byTopic.set(topic, entries.add(entry));
      return () => entries.delete(entry);
    },
    overdueMs(topic, nowMs) {
      let oldestMs = nowMs;
      for (const { dueAtMs } of byTopic.get(topic) ?? []) oldestMs = Math.min(oldestMs, dueAtMs);
      return nowMs - oldestMs;
    },
  };
}

/** When each message of an open loop is to be sent, in milliseconds from its start. */
export interface OpenLoopSchedule {
  total: number;
  intendedMs: (n: number) => number;
  /** Returns how many messages should have been sent after this time. */
  dueCount: (elapsedMs: number) => number;
}

export function createOpenLoopSchedule(ratePerSecond: number, seconds: number): OpenLoopSchedule {
  const total = Math.round(ratePerSecond * seconds);
  const intervalMs = 1_000 / ratePerSecond;
  return {
    total,
    intendedMs: (n) => n * intervalMs,
    // The first is due at 0: one more than the number of whole intervals that have passed.
    dueCount: (elapsedMs) =>
      elapsedMs < 0 ? 0 : Math.min(total, Math.floor(elapsedMs / intervalMs) + 1),
  };
}

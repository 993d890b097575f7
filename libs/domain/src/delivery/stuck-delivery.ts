import type { Attempt, Delivery } from './delivery.ts';

/** A pending delivery so old that no record in Kafka can continue it. It has only the newest attempt. */
export type StuckDelivery = Delivery;

/** The fault: a retry is overdue, the schedule was not ended, or no attempt was ever recorded. */
export const STUCK_CAUSES = ['overdue_retry', 'unended_schedule', 'lost_message'] as const;

export type StuckCause = (typeof STUCK_CAUSES)[number];

/** The record that continues a stuck delivery. */
export type Remedy =
  | {
      kind: 'attempt';
      cause: 'overdue_retry' | 'lost_message';
      attemptNumber: number;
      /** Milliseconds since 1970, in the past. */
      dueAtMs: number;
    }
  | { kind: 'failure'; cause: 'unended_schedule'; attempt: Attempt };

/** Publishing a remedy twice is harmless: both kinds are checked against the recorded delivery. */
export function remedyFor(delivery: StuckDelivery): Remedy {
  const { attemptCount, attempts, nextAttemptAtMs, createdAtMs } = delivery;
  const last = attempts.at(-1);
  if (last && nextAttemptAtMs === null) {
    return { kind: 'failure', cause: 'unended_schedule', attempt: last };
  }
  return {
    kind: 'attempt',
    cause: attemptCount === 0 ? 'lost_message' : 'overdue_retry',
    attemptNumber: attemptCount + 1,
    dueAtMs: nextAttemptAtMs ?? createdAtMs,
  };
}

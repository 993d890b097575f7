import type { Attempt, Delivery } from './delivery.ts';

/**
 * A pending delivery that no record in Kafka moves on any more, as far as its age tells. Of its
 * attempts only the newest is here.
 */
export type StuckDelivery = Delivery;

/** What went wrong: a retry is overdue, nobody ended the schedule, or no attempt was ever recorded. */
export const STUCK_CAUSES = ['overdue_retry', 'unended_schedule', 'lost_message'] as const;

export type StuckCause = (typeof STUCK_CAUSES)[number];

/** What has to be published so that a stuck delivery moves on. */
export type Remedy =
  | {
      kind: 'attempt';
      cause: 'overdue_retry' | 'lost_message';
      attemptNumber: number;
      /** Milliseconds since 1970, in the past. */
      dueAtMs: number;
    }
  | { kind: 'failure'; cause: 'unended_schedule'; attempt: Attempt };

/** Publishing it twice is harmless: both kinds are checked against what is recorded. */
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

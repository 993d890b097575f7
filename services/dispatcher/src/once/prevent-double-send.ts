import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { turnAtOf } from '../isolation/defer-attempt.ts';
import type { AttemptLeases } from './attempt-leases.ts';
import type { CheckRecorded, Remaining } from './check-recorded.ts';
import type { RecentIds } from './recent-ids.ts';

export interface Claim {
  remaining: Remaining;
  /** To be called once the outcome of the attempt is recorded and its consequence published. */
  release: () => void;
}

export interface DoubleSendGuard {
  /**
   * Resolves when nobody else works on the attempt, with what is left to do of it. Rejects when the
   * store cannot be asked; then nothing needs to be released.
   */
  claim: (record: LogRecord, due: DueAttempt) => Promise<Claim>;
}

export interface DoubleSendDeps {
  leases: Pick<AttemptLeases, 'take' | 'takeWhenFree' | 'isHeld'>;
  /** The attempts that this process has worked on, added when their lease is released. */
  recentIds: Pick<RecentIds, 'has'>;
  checkRecorded: CheckRecorded;
  slowLaneTopic: string;
  nowMs: () => number;
}

/** An attempt that is later than this may have been swept as lost, see RECONCILE_AFTER. */
const LATE_MS = 3_600_000;

const SEND: Remaining = { kind: 'send' };

/**
 * What prevents that an attempt is sent twice. Kafka delivers a record at least once, so each attempt
 * may be read again: after a crash, when a partition changes hands, or from a copy of its record.
 *
 * What prevents a double send:
 * 1. A lease in the memory of this process: of two records of one attempt the second waits until the
 *    outcome of the first is recorded (attempt-leases.ts).
 * 2. The announcement of that lease in Redis, for attempts that last longer than 50 ms: a dispatcher
 *    that takes over a partition waits for what its former owner still works on.
 * 3. The document of the delivery, written before the offset is committed: an attempt that it has is
 *    not made again (check-recorded.ts). Only an attempt that may have been read before is looked up:
 *    its record lay in a partition when that changed hands, came over the slow lane or from a
 *    deferral, or is over an hour late, or its id is one of the last 50,000 (recent-ids.ts), which
 *    cover half a minute at 1,500 attempts/s. All others are not looked up: the hot path asks nobody.
 * 4. The mark of a resend, which is looked up for every resend: it is sent only while it is asked for.
 * 5. Ids that are derived from message, webhook and attempt number: records and documents that are
 *    written twice are recognised as the same attempt.
 * 6. In the retry service, the check at release: an attempt that is recorded already is dropped
 *    (domain/delivery-lifecycle/when-released.ts), and one that was parked twice is released once per batch.
 *
 * What cannot be prevented (docs/contract.md C10.1). The endpoint recognises all of it by `webhook-id`:
 * - After a crash: the attempts that were under way, and those whose response came in the last 25 ms
 *   and was not recorded yet.
 * - A request whose response did not arrive in time, although the endpoint processed it: its retry.
 * - Without Redis: the attempts that a living former owner still works on when a partition changes
 *   hands.
 * - An attempt whose outcome is not stored within 120 s, as in an outage of MongoDB: its lease counts as
 *   abandoned, and a copy of its record may be sent.
 */
export function createDoubleSendGuard(deps: DoubleSendDeps): DoubleSendGuard {
  const { leases, checkRecorded } = deps;
  return {
    async claim(record, due) {
      const { attemptId } = due;
      const mayBeRepeated = mayBeReadBefore(deps, record, due);
      const release = mayBeRepeated ? await leases.takeWhenFree(attemptId) : leases.take(attemptId);
      if (!mayBeRepeated && due.trigger !== 'resend') return { remaining: SEND, release };
      try {
        return { remaining: await checkRecorded(due), release };
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}

/** Item 3 of the list above. */
function mayBeReadBefore(
  { leases, recentIds, slowLaneTopic, nowMs }: DoubleSendDeps,
  record: LogRecord,
  { attemptId, dueAtMs }: DueAttempt,
): boolean {
  return (
    record.isInherited ||
    record.topic === slowLaneTopic ||
    turnAtOf(record, nowMs()) !== null ||
    nowMs() - dueAtMs > LATE_MS ||
    leases.isHeld(attemptId) ||
    recentIds.has(attemptId)
  );
}

import { type Attempt, type CancelReason, endedAtMs } from '@posthorn/domain/delivery/delivery.ts';
import { nextAttemptAfter, type RetrySchedule } from '@posthorn/domain/delivery/schedule.ts';
import { expiryReasonAt, PAYLOAD_ERASED } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { EVENT_TYPE_HEADER } from '@posthorn/domain/records/record-headers.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import type { Cancellations } from '../cancellations.ts';

/*
 * When an attempt may be sent, by the times of its message and by what a client has erased or cancelled. Times are in
 * milliseconds since 1970; those of the database decide.
 */

/** A record and the attempt that it asks for. */
export interface DueRecord {
  record: LogRecord;
  due: DueAttempt;
}

export interface WhenToSendDeps {
  /** Whether a client has just erased the payload of the message. */
  isErased: (messageId: string) => boolean;
  cancellations: Pick<Cancellations, 'reasonFor'>;
  time: DatabaseTime;
}

/** Why an attempt is not made now. */
export type Untimely =
  | { kind: 'cancel'; reason: CancelReason }
  /** The time of its message is still to come. */
  | { kind: 'too_early'; untilMs: number };

/** Returns how a due attempt ends, or waits, by what its message says; null when it may be made. */
export function checkTimes(deps: WhenToSendDeps, dueRecord: DueRecord): Untimely | null {
  const { due } = dueRecord;
  const reason = findEnd(deps, dueRecord);
  if (reason) return { kind: 'cancel', reason };
  const { deliverAtMs } = due;
  if (deliverAtMs === undefined || deliverAtMs <= deps.time.nowMs()) return null;
  // Released by a process that knows another time of the database: both are right after its next reply.
  if (due.isStored) deps.time.doubt();
  return { kind: 'too_early', untilMs: deliverAtMs };
}

/** Returns why nothing of the delivery may be sent any more; null while it may. A client may resend what has expired. */
export function findEnd(
  { isErased, cancellations, time }: WhenToSendDeps,
  { record, due }: DueRecord,
): CancelReason | null {
  const { messageId, trigger, expiresAtMs, removeAtMs } = due;
  if (isErased(messageId)) return PAYLOAD_ERASED;
  const cancelled = cancellations.reasonFor(due, record.headers[EVENT_TYPE_HEADER]);
  if (cancelled) return cancelled;
  if (expiresAtMs === undefined && removeAtMs === undefined) return null;
  const isResend = trigger === 'resend';
  const lifetime = { ...(!isResend && { expiresAtMs }), removeAtMs };
  return expiryReasonAt(lifetime, time.earlierMs());
}

export interface ExpiryDeps {
  time: DatabaseTime;
  schedule: RetrySchedule;
  /** The time of this process. */
  nowMs: () => number;
}

/** Returns why nothing may be sent at a later time of this process's clock, if that is so by the database's clock too. */
export function expiryAt(
  { time, nowMs }: Omit<ExpiryDeps, 'schedule'>,
  due: DueAttempt,
  atMs: number,
): CancelReason | null {
  return expiryReasonAt(due, atMs - (nowMs() - time.earlierMs()));
}

/** Returns why the attempt after a failed one may not be sent; null when it may. A resend has no next attempt. */
export function expiryBeforeNext(
  deps: ExpiryDeps,
  due: DueAttempt,
  attempt: Attempt,
): CancelReason | null {
  const hasEnd = due.expiresAtMs !== undefined || due.removeAtMs !== undefined;
  if (!hasEnd || due.trigger === 'resend') return null;
  const ended = { attemptNumber: attempt.number, endedAtMs: endedAtMs(attempt) };
  const next = nextAttemptAfter(ended, deps.schedule);
  return next && expiryAt(deps, due, next.dueAtMs);
}

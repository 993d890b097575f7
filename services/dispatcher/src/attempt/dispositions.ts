import { hasAllAttempts } from '@posthorn/domain/delivery/ending.ts';
import { MESSAGE_MISSING } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import type { Held } from '@posthorn/platform/memory/memory-budgets.ts';
import type { DeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import type { OutcomeQueue } from './attempt-leases.ts';
import type { Defer, MoveToSlowLane } from '../defer.ts';
import type { Admission } from '../isolation/gate.ts';
import type { Remaining } from './prevent-double-send.ts';
import type { ErasePayloads, Settle, SettledAttempt } from '../settle.ts';
import type { Target } from '../webhooks.ts';
import { abortedAttempt, endedBy, settledOf } from './settled-attempt.ts';
import { type DueRecord, expiryAt, type ExpiryDeps, type Untimely } from './when-to-send.ts';

/** Every end of a due attempt. */
export type Disposition =
  | Exclude<Remaining, { kind: 'send' }>
  | Exclude<Target, { kind: 'send' }>
  | Exclude<Admission, { kind: 'slot' }>
  | SettledAttempt
  | Untimely
  /** The message is not stored any more, so that nothing can be sent. */
  | { kind: 'message_missing' }
  /** Our proxy failed before anything was sent, or the host of the token server has no start left. */
  | { kind: 'defer'; because: 'proxy' | 'host'; reservedAtMs: number };

export interface DispositionDeps extends Omit<ExpiryDeps, 'schedule'> {
  settle: Readonly<Record<OutcomeQueue, Settle>>;
  erasePayloads: ErasePayloads;
  moveToSlowLane: MoveToSlowLane;
  defer: Defer;
  deadLetters: DeadLetters;
}

export function isSuccess(disposition: Disposition): boolean {
  return disposition.kind === 'attempted' && disposition.attempt.outcome === 'success';
}

/** Whether the delivery may have further attempts after this one. */
export function mayStayPending(disposition: Disposition): boolean {
  switch (disposition.kind) {
    case 'attempted':
      return disposition.cancelReason === null;
    case 'publish_failure':
    case 'wait':
    case 'too_early':
    case 'abort':
    case 'slow_lane':
    case 'defer':
      return true;
    case 'drop':
    case 'cancel':
    case 'message_missing':
    case 'company_mismatch':
      return false;
  }
}

/** The one place where an attempt has consequences. Resolves when they are stored and published. */
export async function applyDisposition(
  deps: DispositionDeps,
  { record, due, held }: DueRecord & { held: Held },
  disposition: Disposition,
): Promise<void> {
  // A resend has a mark instead of a schedule, and leaves the status of its delivery when it fails.
  const settle = deps.settle[outcomeQueueOf(due)];
  switch (disposition.kind) {
    // The request was made.
    case 'attempted':
      // The beginning of its response is in memory until it is stored.
      held.setTo(record.value.length + (disposition.attempt.response?.length ?? 0));
      return settle(disposition);
    // It was recorded before, with all that follows from it; or the resend was given up, or the company removed.
    case 'drop':
      // Whoever recorded it may have died before the payload was erased or its message noted.
      return deps.erasePayloads([due]);
    // The attempt was recorded before, and its failure may not have been published.
    case 'publish_failure':
      return settle({ ...settledOf(record, due, disposition.attempt), isRecorded: true });
    // The webhook is deleted or disabled, or a client has cancelled what was pending.
    case 'cancel':
      return settle({ kind: 'cancelled', due, reason: disposition.reason });
    // A resend keeps its mark instead, and is published again when the hold has ended.
    case 'wait':
      return due.trigger === 'resend' ? undefined : settle({ kind: 'waiting', due, untilMs: null });
    case 'too_early':
      return settle({ kind: 'waiting', due, untilMs: disposition.untilMs });
    case 'message_missing':
      await deps.deadLetters.put(record, 'message_missing', 'the message is not stored any more');
      return settle({ kind: 'cancelled', due, reason: MESSAGE_MISSING });
    // Written by a program with our keys and a fault, or restored from another database.
    case 'company_mismatch':
      return deps.deadLetters.put(
        record,
        'company_mismatch',
        'the webhook belongs to another company',
      );
    // The request cannot be signed: a failure like any other, with its retry.
    case 'abort': {
      const isLast = due.trigger !== 'resend' && hasAllAttempts(disposition, due.attemptNumber);
      const attempt = endedBy(isLast ? 'max_attempts' : null, abortedAttempt(due, deps.nowMs()));
      return settle({ ...settledOf(record, due, attempt), appId: disposition.appId });
    }
    // The endpoint takes a second or longer: out of the way of the others.
    case 'slow_lane':
      return deps.moveToSlowLane(record, due);
    // The endpoint cannot take it now, or our proxy fails. No attempt of the schedule is used up.
    case 'defer': {
      const expiry =
        due.trigger === 'resend' ? null : expiryAt(deps, due, disposition.reservedAtMs);
      if (expiry) return settle({ kind: 'cancelled', due, reason: expiry });
      return deps.defer(record, due, disposition);
    }
  }
}

export function outcomeQueueOf({ trigger }: DueAttempt): OutcomeQueue {
  return trigger === 'resend' ? 'resend' : 'delivery';
}

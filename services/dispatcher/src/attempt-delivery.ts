import {
  decodeMessageCreated,
  decodeRetryDue,
  readRecord,
  UnreadableRecordError,
  type DueAttempt,
} from '@posthorn/domain/records/records.ts';
import { lastingHeaders } from '@posthorn/domain/records/record-headers.ts';
import {
  DISABLED_AT_ACCEPTANCE,
  MESSAGE_MISSING,
  WEBHOOK_REMOVED,
} from '@posthorn/domain/delivery-lifecycle/when-cancelled.ts';
import type { CancelReason } from '@posthorn/domain/message/delivery.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import type { ConsumeOptions, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { RecordMemory } from '@posthorn/platform/memory/record-memory.ts';
import { enterQueue, type AttemptUnderWay, type EnterQueueDeps } from './enter-queue.ts';
import type { Defer } from './isolation/defer-attempt.ts';
import type { MoveToSlowLane } from './isolation/move-to-slow-lane.ts';
import type { Admission } from './isolation/queues/admission.ts';
import { findTarget, type Target } from './load/find-target.ts';
import type { LoadWebhook } from './load/load-webhook.ts';
import { abortedAttempt, type Made, type MakeAttempt } from './make-attempt.ts';
import type { Remaining } from './once/check-recorded.ts';
import type { HeldLease } from './once/attempt-leases.ts';
import type { OutcomeQueue } from './once/lease-state.ts';
import type { DoubleSendGuard } from './once/prevent-double-send.ts';
import type { ErasePayloads } from './settle/erase-payloads.ts';
import type { Settle, Settled } from './settle/settle-delivery.ts';

export interface AttemptDeps extends EnterQueueDeps {
  messageCreatedTopic: string;
  deadLetters: DeadLetters;
  memory: Pick<RecordMemory, 'hold'>;
  doubleSends: DoubleSendGuard;
  loadWebhook: LoadWebhook;
  /** Whether the company is removed, or is being removed. */
  isCompanyRemoved: (companyId: string) => Promise<boolean>;
  makeAttempt: MakeAttempt;
  moveToSlowLane: MoveToSlowLane;
  defer: Defer;
  settleDelivery: Settle;
  settleResend: Settle;
  erasePayloads: ErasePayloads;
}

/** Everything that can become of a due attempt. */
type Disposition =
  | Exclude<Remaining, { kind: 'send' }>
  | Exclude<Target, { kind: 'send' }>
  | Exclude<Admission, { kind: 'place' }>
  | Exclude<Made, { kind: 'start_over' | 'claim_again' }>;

/**
 * Attempt: one record becomes one request to the endpoint, or another disposition applies.
 * Resolves when that is stored and published; then the offset of the record may be committed.
 */
export function createAttemptDelivery(deps: AttemptDeps): ConsumeOptions['handle'] {
  return async (record, isOurs) => {
    const due = readRecord(() => decode(deps, record));
    if (due instanceof UnreadableRecordError) {
      await deps.deadLetters.put(record, 'unreadable_record', due.message);
      return;
    }
    const held = deps.memory.hold(record.value.length);
    try {
      await attemptOnce(deps, { record, due, held, isOurs });
    } finally {
      held.release();
    }
  };
}

function decode({ messageCreatedTopic }: AttemptDeps, { topic, value }: LogRecord): DueAttempt {
  return topic === messageCreatedTopic ? decodeMessageCreated(value) : decodeRetryDue(value);
}

async function attemptOnce(deps: AttemptDeps, underWay: AttemptUnderWay): Promise<void> {
  const { record, due, isOurs } = underWay;
  for (;;) {
    const { remaining, lease } = await deps.doubleSends.claim(record, due, isOurs);
    try {
      const outcome = remaining.kind === 'send' ? await send(deps, underWay, lease) : remaining;
      if (outcome.kind === 'claim_again') continue;
      if (outcome.kind === 'attempted') lease.markMade(queueOf(due));
      await apply(deps, underWay, outcome);
      return;
    } finally {
      lease.release();
    }
  }
}

/** Sends the request, or finds out why it is not to be sent now. Changes nothing else. */
async function send(
  deps: AttemptDeps,
  underWay: AttemptUnderWay,
  lease: HeldLease,
): Promise<Disposition | { kind: 'claim_again' }> {
  const { record, due } = underWay;
  if (due.isCancelled) return { kind: 'cancel', reason: DISABLED_AT_ACCEPTANCE };
  for (;;) {
    const target = await findTarget(deps.loadWebhook, due);
    if (target.kind === 'cancel' && (await isOfRemoved(deps, target.reason, due))) return DROP;
    if (target.kind !== 'send') return target;
    const admission = await enterQueue(deps, underWay, target.to.webhook);
    if (admission.kind !== 'place') return admission;
    const made = await deps.makeAttempt(record, due, { place: admission.place, lease });
    if (made.kind !== 'start_over') return made;
  }
}

const DROP = { kind: 'drop' } as const;

/** A company is removed with its webhooks. Nothing may be recorded for it any more. */
function isOfRemoved(
  { isCompanyRemoved }: AttemptDeps,
  reason: CancelReason,
  { companyId }: DueAttempt,
): Promise<boolean> {
  return reason === WEBHOOK_REMOVED ? isCompanyRemoved(companyId) : Promise.resolve(false);
}

/** The one place where an attempt has consequences. */
async function apply(
  deps: AttemptDeps,
  { record, due, held }: AttemptUnderWay,
  disposition: Disposition,
): Promise<void> {
  switch (disposition.kind) {
    // The request was made.
    case 'attempted':
      // The beginning of its response is in memory until it is stored.
      held.setTo(record.value.length + (disposition.attempt.response?.length ?? 0));
      return settle(deps, disposition);
    // It was recorded before, with all that follows from it; or the resend was given up, or the company removed.
    case 'drop':
      // Whoever recorded it may have died before the payload was erased or its message noted.
      return deps.erasePayloads([due]);
    // The attempt was recorded before, and its failure may not have been published.
    case 'publish_failure':
      return settle(deps, {
        kind: 'attempted',
        due,
        attempt: disposition.attempt,
        appId: due.appId,
        payloadBytes: 0,
        headers: lastingHeaders(record.headers),
        cancelReason: null,
        isRecorded: true,
      });
    // The webhook is deleted or disabled.
    case 'cancel':
      return settle(deps, { kind: 'cancelled', due, reason: disposition.reason });
    case 'message_missing':
      await deps.deadLetters.put(record, 'message_missing', 'the message is not stored any more');
      return settle(deps, { kind: 'cancelled', due, reason: MESSAGE_MISSING });
    // Written by a program with our keys and a fault, or restored from another database.
    case 'company_mismatch':
      return deps.deadLetters.put(
        record,
        'company_mismatch',
        'the webhook belongs to another company',
      );
    // The request cannot be signed: a failure like any other, with its retry.
    case 'abort':
      return settle(deps, {
        kind: 'attempted',
        due,
        attempt: abortedAttempt(due, deps.nowMs()),
        appId: disposition.appId,
        payloadBytes: 0,
        headers: lastingHeaders(record.headers),
        cancelReason: null,
        isRecorded: false,
      });
    // The endpoint takes a second or longer: out of the way of the others.
    case 'slow_lane':
      return deps.moveToSlowLane(record, due);
    // The endpoint cannot take it now, or our proxy fails. No attempt of the schedule is used up.
    case 'defer':
      return deps.defer(record, due, disposition);
  }
}

function queueOf({ trigger }: DueAttempt): OutcomeQueue {
  return trigger === 'resend' ? 'resend' : 'delivery';
}

/** A resend has a mark instead of a schedule, and leaves the status of its delivery when it fails. */
function settle(deps: AttemptDeps, settled: Settled): Promise<void> {
  switch (queueOf(settled.due)) {
    case 'resend':
      return deps.settleResend(settled);
    case 'delivery':
      return deps.settleDelivery(settled);
  }
}

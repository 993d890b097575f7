import {
  DISABLED_AT_ACCEPTANCE,
  WEBHOOK_REMOVED,
} from '@posthorn/domain/delivery/when-cancelled.ts';
import type { CancelReason } from '@posthorn/domain/delivery/delivery.ts';
import { DEFERRED_SINCE_HEADER, readMs } from '@posthorn/domain/records/record-headers.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { readRecord, UnreadableRecordError } from '@posthorn/domain/records/record-value.ts';
import { decodeMessageCreated, payloadlessValue } from '@posthorn/domain/records/records.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { IsOurs, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Held, RecordMemory } from '@posthorn/platform/memory/memory-budgets.ts';
import type { HeldLease } from './attempt-leases.ts';
import { reservedAtOf } from '../defer.ts';
import type { Candidate, QueueKind } from '../isolation/gate.ts';
import type { Queues } from '../isolation/queues.ts';
import type { Place } from '../order/sequence-in-memory.ts';
import type { Sequences } from '../order/sequences.ts';
import type { DoubleSendGuard, EnterRecord } from './prevent-double-send.ts';
import { findTarget, type LoadedWebhook } from '../webhooks.ts';
import {
  applyDisposition,
  type Disposition,
  type DispositionDeps,
  isSuccess,
  mayStayPending,
  outcomeQueueOf,
} from './dispositions.ts';
import { makeRequest, type RequestDeps, type StartOver } from './make-request.ts';
import { checkTimes, type DueRecord } from './when-to-send.ts';

export interface AttemptDeps extends RequestDeps, DispositionDeps {
  messageCreatedTopic: string;
  slowLaneTopic: string;
  memory: Pick<RecordMemory, 'hold'>;
  doubleSends: DoubleSendGuard;
  sequences: Pick<Sequences, 'enter' | 'wake'>;
  /** Whether the company is removed, or is being removed. */
  isCompanyRemoved: (companyId: string) => Promise<boolean>;
  queues: Pick<Queues, 'enter'>;
}

/** An attempt, the memory that its record takes, and whether its partition is still read here. */
interface AttemptUnderWay extends DueRecord {
  held: Held;
  isOurs: IsOurs;
  /** Its place behind earlier deliveries; null without an ordering key. */
  place: Place | null;
}

/**
 * Attempt: one record becomes one request to the endpoint, or another disposition applies. The record gets its place among
 * those with its ordering key at once. The function that is returned resolves when everything is stored and published; then
 * the offset of the record may be committed.
 */
export function createAttemptDelivery(deps: AttemptDeps): EnterRecord {
  return (record, isOurs) => {
    const due = readRecord(() => decode(deps, record));
    if (due instanceof UnreadableRecordError) {
      return () => deps.deadLetters.put(record, 'unreadable_record', due.message);
    }
    // Before the first await: records are handled in the order of offsets, which is that of their deliveries.
    const place = deps.sequences.enter({ record, due, isOurs });
    return async () => {
      const held = deps.memory.hold(record.value.length);
      try {
        await attemptInPlace(deps, { record, due, held, isOurs, place });
      } finally {
        held.release();
      }
    };
  };
}

/** Waits for what is in front of the attempt. When it has ended, the next one is in memory, published, or missing. */
async function attemptInPlace(deps: AttemptDeps, underWay: AttemptUnderWay): Promise<void> {
  const { place } = underWay;
  if (!place) return attempt(deps, underWay);
  const dropOwn = (): void => {
    dropPayload(underWay);
  };
  try {
    if ((await place.turn(dropOwn)) === 'done') return;
    await attempt(deps, underWay);
    await place.end();
  } catch (error) {
    place.fail();
    throw error;
  }
}

function decode({ messageCreatedTopic }: AttemptDeps, { topic, value }: LogRecord): DueAttempt {
  return topic === messageCreatedTopic ? decodeMessageCreated(value) : decodeRetryDue(value);
}

async function attempt(deps: AttemptDeps, underWay: AttemptUnderWay): Promise<void> {
  const { record, due, isOurs, place } = underWay;
  for (;;) {
    const { remaining, lease } = await deps.doubleSends.claim(record, due, isOurs);
    try {
      const disposition =
        remaining.kind === 'send' ? await sendOrDispose(deps, underWay, lease) : remaining;
      if (disposition.kind === 'start_over') continue;
      if (disposition.kind === 'attempted') lease.markMade(outcomeQueueOf(due));
      if (place) await moveOn(place, disposition);
      await applyDisposition(deps, underWay, disposition);
      if (due.trigger === 'resend' && isSuccess(disposition)) await deps.sequences.wake(due);
      return;
    } finally {
      lease.release();
    }
  }
}

/** The next one begins at once after a success. Otherwise the sequence is stored before the delivery. */
async function moveOn(place: Place, disposition: Disposition): Promise<void> {
  if (isSuccess(disposition)) place.succeeded();
  else if (mayStayPending(disposition)) await place.leave();
}

/** Sends the request, or finds out why it is not to be sent now. Changes nothing else. */
async function sendOrDispose(
  deps: AttemptDeps,
  underWay: AttemptUnderWay,
  lease: HeldLease,
): Promise<Disposition | StartOver> {
  const { due } = underWay;
  const target = await findTarget(deps, due);
  if (target.kind === 'company_mismatch') return target;
  if (target.kind === 'cancel' && (await isOfRemoved(deps, target.reason, due))) return DROP;
  if (due.isCancelled) return { kind: 'cancel', reason: DISABLED_AT_ACCEPTANCE };
  if (target.kind === 'cancel') return target;
  const untimely = checkTimes(deps, underWay);
  if (untimely) return untimely;
  if (target.kind !== 'send') return target;
  const admission = await deps.queues.enter(candidateOf(deps, underWay, target.to));
  if (admission.kind !== 'slot') return admission;
  return makeRequest(deps, underWay, { found: target.to, slot: admission.slot, lease });
}

const DROP = { kind: 'drop' } as const;

/**
 * A company is removed with its webhooks. Nothing may be recorded for it any more. Its status is read only for a webhook
 * that is gone: the list of suspended companies has those that are being removed, not those that are gone.
 */
function isOfRemoved(
  { isCompanyRemoved }: AttemptDeps,
  reason: CancelReason,
  { companyId }: DueAttempt,
): Promise<boolean> {
  return reason === WEBHOOK_REMOVED ? isCompanyRemoved(companyId) : Promise.resolve(false);
}

function candidateOf(
  { slowLaneTopic, nowMs }: AttemptDeps,
  underWay: AttemptUnderWay,
  { webhook: { id, url, rateLimitPerSecond } }: LoadedWebhook,
): Candidate {
  const { record, due } = underWay;
  return {
    webhookId: id,
    companyId: due.companyId,
    url,
    queue: record.topic === slowLaneTopic ? 'slow' : queueKindOf(due),
    trigger: due.trigger,
    rateLimitPerSecond,
    reservedAtMs: reservedAtOf(record, nowMs()),
    deferredSinceMs: readMs(record.headers, DEFERRED_SINCE_HEADER),
    hasPayload: () => due.payload !== null,
    dropPayload: () => {
      dropPayload(underWay);
    },
  };
}

function queueKindOf({ trigger }: DueAttempt): QueueKind {
  return trigger === 'first' || trigger === 'test' ? 'first' : 'retry';
}

/** Value and payload are slices of one fetch. Either of them would keep all of it in memory. */
function dropPayload({ record, due, held }: AttemptUnderWay): void {
  if (!due.payload) return;
  record.value = payloadlessValue(record.value);
  due.payload = null;
  held.setTo(record.value.length);
}

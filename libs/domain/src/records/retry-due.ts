import { z } from 'zod';
import { type DeliveryRef, refOf, TRIGGERS } from '../delivery/delivery.ts';
import { type DueAttempt, idsOf } from './due-attempt.ts';
import {
  CLOCK_AHEAD_HEADER,
  DEFERRED_SINCE_HEADER,
  DUE_AT_HEADER,
  lastingHeaders,
  type RecordHeaders,
  TURN_AT_HEADER,
} from './record-headers.ts';
import { decodeFields, DELIVERY_REF, encodeFields } from './record-value.ts';

/*
 * The record of an attempt that is not the one a message was published with. It lies in a delay topic until it is due, or
 * goes to `retry-due` at once. Each function below is one reason for such a record.
 */

const retryDueSchema = z.object({
  ...DELIVERY_REF,
  attemptNumber: z.number().int().min(1),
  dueAtMs: z.number().int(),
  /** No attempt begins before it. */
  deliverAtMs: z.number().int().exactOptional(),
  trigger: z.enum(TRIGGERS).default('retry'),
  /** The delivery has a document, although it may have no attempt. */
  isStored: z.literal(true).exactOptional(),
});

type RetryDue = Omit<z.input<typeof retryDueSchema>, 'version'>;

/** A record without its topic. The key is the webhook: records of one webhook share a partition. */
export interface RetryDueRecord {
  key: string;
  value: Buffer;
  headers: RecordHeaders;
}

/** Throws UnreadableRecordError. */
export function decodeRetryDue(value: Buffer): DueAttempt {
  const due = decodeFields(retryDueSchema, value.toString());
  return { ...due, ...idsOf(due, due.attemptNumber), isCancelled: false, payload: null };
}

export function encodeRetryDue(retry: RetryDue): Buffer {
  return Buffer.from(encodeFields(retry));
}

type RetryDueFields = Omit<RetryDue, keyof DeliveryRef>;

function recordOf(
  source: DeliveryRef,
  fields: RetryDueFields,
  headers: RecordHeaders,
): RetryDueRecord {
  const value = encodeRetryDue({ ...refOf(source), ...fields });
  return { key: source.webhookId, value, headers };
}

/** Makes the dispatcher look up what is recorded before the attempt: the record may be published twice. */
const lookedUp = (atMs: number): RecordHeaders => ({ [TURN_AT_HEADER]: String(atMs) });

/** The next attempt of the schedule, after a failure with these headers. Parked until `dueAtMs`. */
export function parkedRecord(
  failed: DeliveryRef,
  { attemptNumber, dueAtMs }: Pick<RetryDueFields, 'attemptNumber' | 'dueAtMs'>,
  headers: RecordHeaders,
): RetryDueRecord {
  return recordOf(
    failed,
    { attemptNumber, dueAtMs },
    { ...headers, [DUE_AT_HEADER]: String(dueAtMs) },
  );
}

/** Times are in milliseconds since 1970. */
interface DeferredTimes {
  dueAtMs: number;
  reservedAtMs: number;
  /** Since when open circuits have deferred it; null when none has. */
  sinceMs: number | null;
  /** The milliseconds added to `dueAtMs` because the releasing clock is ahead. */
  aheadMs: number;
}

/**
 * An attempt that its endpoint cannot take now. Nothing of the record itself but small, known fields: a broker accepts the
 * deferred record, however near to its limit the record was.
 */
export function deferredRecord(
  due: DueAttempt,
  { dueAtMs, reservedAtMs, sinceMs, aheadMs }: DeferredTimes,
  headers: RecordHeaders,
): RetryDueRecord {
  return recordOf(due, sameAttempt(due, dueAtMs), {
    ...lastingHeaders(headers),
    ...(sinceMs !== null && { [DEFERRED_SINCE_HEADER]: String(sinceMs) }),
    [DUE_AT_HEADER]: String(dueAtMs),
    [TURN_AT_HEADER]: String(Math.ceil(reservedAtMs)),
    [CLOCK_AHEAD_HEADER]: String(aheadMs),
  });
}

/** An attempt that moves to the slow lane with all its headers. */
export function slowLaneRecord(due: DueAttempt, headers: RecordHeaders): RetryDueRecord {
  return recordOf(due, sameAttempt(due, due.dueAtMs), headers);
}

function sameAttempt(
  { attemptNumber, trigger, isStored }: DueAttempt,
  dueAtMs: number,
): RetryDueFields {
  return { attemptNumber, dueAtMs, trigger, ...(isStored && { isStored }) };
}

/** A delivery that has waited without a record in Kafka. */
interface Waited extends DeliveryRef {
  /** Number of its last attempt. */
  attemptCount: number;
  /** The time of its message, for which it has waited, in milliseconds since 1970: the dispatcher must agree that it has come. */
  deliverAtMs?: number;
}

/**
 * The attempt that is due after a hold, or at the time of its message. It keeps its number. A first attempt stands in the
 * queue of first attempts: retries would have only half of the endpoint's slots.
 */
export function releasedRecord(delivery: Waited, atMs: number): RetryDueRecord {
  const { attemptCount, deliverAtMs } = delivery;
  const attemptNumber = attemptCount + 1;
  const trigger = attemptNumber === 1 ? 'first' : 'retry';
  const time = deliverAtMs === undefined ? {} : { deliverAtMs };
  const fields = { attemptNumber, dueAtMs: atMs, trigger, isStored: true, ...time } as const;
  return recordOf(delivery, fields, lookedUp(atMs));
}

/**
 * The attempt of a delivery that has waited for earlier ones with its ordering key. Those of a key are published in their
 * order, and the dispatcher decides again whether each may begin.
 */
export function orderedRecord(delivery: Waited, atMs: number): RetryDueRecord {
  return releasedRecord(delivery, atMs);
}

/** The first attempt of a replayed message. It stands behind fresh messages. */
export function replayedRecord(ref: DeliveryRef, atMs: number): RetryDueRecord {
  return recordOf(ref, { attemptNumber: 1, dueAtMs: atMs, isStored: true }, lookedUp(atMs));
}

/** The attempt that moves a stuck delivery on. It stands behind fresh messages, even when it is the first. */
export function sweptRecord(
  ref: DeliveryRef,
  { attemptNumber, dueAtMs }: Pick<RetryDueFields, 'attemptNumber' | 'dueAtMs'>,
  atMs: number,
): RetryDueRecord {
  return recordOf(ref, { attemptNumber, dueAtMs, isStored: true }, lookedUp(atMs));
}

/** The one attempt of a resend, whose mark says what became of it. */
export function resentRecord(
  ref: DeliveryRef,
  { attemptNumber, dueAtMs }: Pick<RetryDueFields, 'attemptNumber' | 'dueAtMs'>,
): RetryDueRecord {
  return recordOf(ref, { attemptNumber, dueAtMs, trigger: 'resend' }, {});
}

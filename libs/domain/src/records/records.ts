import { z } from 'zod';
import { type DeliveryRef, ENDINGS, refOf } from '../delivery/delivery.ts';
import type { IdentifiedRef } from '../delivery/settlement.ts';
import { deliveryIdOf } from '../ids.ts';
import { type DueAttempt, idsOf } from './due-attempt.ts';
import {
  decodeFields,
  DELIVERY_REF,
  encodeFields,
  readRecord,
  UnreadableRecordError,
} from './record-value.ts';
import { decodeRetryDue } from './retry-due.ts';
import { delayTopicsAmong, topicNames } from './topics.ts';

/** The largest payload in a message-created record, in bytes. */
export const INLINE_PAYLOAD_MAX_BYTES = 16_384;

const NEWLINE = 0x0a;

const messageCreatedSchema = z.object({
  ...DELIVERY_REF,
  trigger: z.enum(['first', 'test']).default('first'),
  /** The webhook was disabled when the message was accepted, see `cancelReasonAtAcceptance`. */
  isCancelled: z.boolean().default(false),
  /** No attempt begins before it. */
  deliverAtMs: z.number().int().exactOptional(),
});

const deliveryFailedSchema = z.object({
  ...DELIVERY_REF,
  attemptNumber: z.number().int().min(1),
  endedAtMs: z.number().int(),
  outcome: z.string().max(32),
  statusCode: z.number().int().nullable(),
  /** Absent while the schedule decides. One of a later version is read as absent: the delivery then goes on as scheduled. */
  ending: z.enum(ENDINGS).optional().catch(undefined),
  /**
   * The response of the attempt disables its webhook, as that was changed last at `changedAtMs`. Nothing else follows from
   * such a record; the attempt may be a success or a resend.
   */
  disables: z
    .object({ reason: z.enum(['gone', 'control_header']), changedAtMs: z.number().int() })
    .optional()
    .catch(undefined),
});

/** The first attempt of a delivery. */
export type MessageCreated = Omit<z.input<typeof messageCreatedSchema>, 'version'>;
/** An attempt that failed; published to `delivery-failed`. */
export type DeliveryFailed = Omit<z.infer<typeof deliveryFailedSchema>, 'version'>;

/** The value of a message-created record: one JSON line, a newline, then the payload's bytes or nothing. */
export function encodeMessageCreated(created: MessageCreated, payload: Buffer | null): Buffer {
  const line = Buffer.from(`${encodeFields(created)}\n`);
  return payload ? Buffer.concat([line, payload]) : line;
}

/** Throws UnreadableRecordError. */
export function decodeMessageCreated(value: Buffer): DueAttempt {
  const end = value.indexOf(NEWLINE);
  if (end < 0) throw new UnreadableRecordError('no newline after the first line');
  const ref = decodeFields(messageCreatedSchema, value.toString('utf8', 0, end));
  const payload = end + 1 < value.length ? value.subarray(end + 1) : null;
  return { ...ref, ...idsOf(ref, 1), attemptNumber: 1, dueAtMs: ref.createdAtMs, payload };
}

/** Returns a copy of a message-created value without the payload, which is then loaded from the store. */
export function payloadlessValue(value: Buffer): Buffer {
  return Buffer.from(value.subarray(0, value.indexOf(NEWLINE) + 1));
}

export function encodeDeliveryFailed(failed: DeliveryFailed): Buffer {
  return Buffer.from(encodeFields(failed));
}

/** Throws UnreadableRecordError. */
export function decodeDeliveryFailed(value: Buffer): DeliveryFailed {
  return decodeFields(deliveryFailedSchema, value.toString());
}

/** The delivery and the attempt of a record, whatever its topic. */
export interface RecordSubject extends DeliveryRef {
  deliveryId: string;
  /** Number of the attempt that follows when the record is processed. */
  nextAttemptNumber: number;
  /** The end of the failed attempt, in milliseconds since 1970; null for other records. */
  endedAtMs: number | null;
}

type RecordKind = 'message_created' | 'delivery_failed' | 'retry_due';

/** Returns the kind of the records of a topic; null for a topic that no service of this installation reads. */
export function recordKindOf(prefix: string, topic: string): RecordKind | null {
  const names = topicNames(prefix, [], []);
  if (topic === names.messageCreated) return 'message_created';
  if (topic === names.deliveryFailed) return 'delivery_failed';
  const isDelayTopic = delayTopicsAmong(prefix, [topic]).size > 0;
  const isDue = isDelayTopic || topic === names.retryDue || topic === names.slowLane;
  return isDue ? 'retry_due' : null;
}

/** Throws UnreadableRecordError. */
function subjectOf(kind: RecordKind, value: Buffer): RecordSubject {
  if (kind === 'delivery_failed') {
    const failed = decodeDeliveryFailed(value);
    const deliveryId = deliveryIdOf(failed.messageId, failed.webhookId);
    const nextAttemptNumber = failed.attemptNumber + 1;
    return { ...refOf(failed), deliveryId, nextAttemptNumber, endedAtMs: failed.endedAtMs };
  }
  const due = kind === 'message_created' ? decodeMessageCreated(value) : decodeRetryDue(value);
  const { deliveryId, attemptNumber: nextAttemptNumber } = due;
  return { ...refOf(due), deliveryId, nextAttemptNumber, endedAtMs: null };
}

/** Returns the ids of a record for a log line; null for an unreadable record. */
export function logFieldsIn(
  prefix: string,
  { topic, value }: { topic: string; value: Buffer },
): DeliveryLogFields | null {
  const kind = recordKindOf(prefix, topic);
  const subject = kind && readRecord(() => subjectOf(kind, value));
  return subject === null || subject instanceof UnreadableRecordError ? null : logFieldsOf(subject);
}

/** The ids of a delivery in log lines. */
type DeliveryLogFields = Pick<
  IdentifiedRef,
  'messageId' | 'deliveryId' | 'webhookId' | 'companyId'
>;

/** Returns these ids without other fields. */
export function logFieldsOf({
  messageId,
  deliveryId,
  webhookId,
  companyId,
}: DeliveryLogFields): DeliveryLogFields {
  return { messageId, deliveryId, webhookId, companyId };
}

/** The most ids of each kind in a line about many deliveries. */
const MAX_IDS = 5;

/** Returns the first few ids of each kind, each once, for a line about many deliveries. */
export function logFieldsOfMany(deliveries: readonly DeliveryLogFields[]): {
  messageIds: string[];
  deliveryIds: string[];
  webhookIds: string[];
  companyIds: string[];
} {
  const first = (name: keyof DeliveryLogFields): string[] =>
    [...new Set(deliveries.map((delivery) => delivery[name]))].slice(0, MAX_IDS);
  return {
    messageIds: first('messageId'),
    deliveryIds: first('deliveryId'),
    webhookIds: first('webhookId'),
    companyIds: first('companyId'),
  };
}

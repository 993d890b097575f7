import { z } from 'zod';
import { ENDINGS } from '../delivery/delivery.ts';
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

const endedAttemptSchema = z.object({
  ...DELIVERY_REF,
  attemptNumber: z.number().int().min(1),
  endedAtMs: z.number().int(),
  outcome: z.string().max(32),
  statusCode: z.number().int().nullable(),
  /** Absent while the schedule decides. One of a later version is read as absent: the delivery then goes on as scheduled. */
  ending: z.enum(ENDINGS).optional().catch(undefined),
  /** Only in a record of the kind `disables`. */
  disables: z
    .object({ reason: z.enum(['gone', 'control_header']), changedAtMs: z.number().int() })
    .optional()
    .catch(undefined),
});

/** The first attempt of a delivery. */
export type MessageCreated = Omit<z.input<typeof messageCreatedSchema>, 'version'>;
/** An attempt that failed: the next one is parked, or its delivery ends. */
export type DeliveryFailed = Omit<z.infer<typeof endedAttemptSchema>, 'version' | 'disables'>;

/**
 * An attempt whose response disables its webhook, as that was changed last at `changedAtMs`. Nothing else follows from its
 * record: a failure has another one, and the attempt may be a success or a resend.
 */
export interface WebhookDisabling extends Omit<DeliveryFailed, 'ending'> {
  reason: 'gone' | 'control_header';
  changedAtMs: number;
}

/** A record of `delivery-failed`. */
export type EndedAttempt =
  ({ kind: 'failed' } & DeliveryFailed) | ({ kind: 'disables' } & WebhookDisabling);

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

/**
 * Has the fields of a failure too. The retry service of the version before takes it for a second failure of the attempt, and
 * drops the retry when it is due.
 */
export function encodeDisabling({ reason, changedAtMs, ...attempt }: WebhookDisabling): Buffer {
  return Buffer.from(encodeFields({ ...attempt, disables: { reason, changedAtMs } }));
}

/** Reads both kinds. Throws UnreadableRecordError. */
export function decodeEndedAttempt(value: Buffer): EndedAttempt {
  const { disables, ending, ...attempt } = decodeFields(endedAttemptSchema, value.toString());
  return disables
    ? { kind: 'disables', ...attempt, ...disables }
    : { kind: 'failed', ...attempt, ...(ending && { ending }) };
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

/** Returns the delivery of a record. Throws UnreadableRecordError. */
function subjectOf(kind: RecordKind, value: Buffer): DeliveryLogFields {
  switch (kind) {
    case 'message_created':
      return decodeMessageCreated(value);
    case 'delivery_failed': {
      const ended = decodeEndedAttempt(value);
      return { ...ended, deliveryId: deliveryIdOf(ended.messageId, ended.webhookId) };
    }
    case 'retry_due':
      return decodeRetryDue(value);
  }
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

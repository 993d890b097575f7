import { z } from 'zod';
import { type DeliveryRef, ENDINGS, refOf, type Trigger, TRIGGERS } from '../delivery/delivery.ts';
import type { IdentifiedRef } from '../delivery/settlement.ts';
import { attemptIdOf, deliveryIdOf } from '../ids.ts';
import { delayTopicsAmong, topicNames } from './topics.ts';

/** The largest payload in a message-created record, in bytes. */
export const INLINE_PAYLOAD_MAX_BYTES = 16_384;

const VERSION = 1;
const NEWLINE = 0x0a;

/** A DeliveryRef, as every record about a delivery carries it. */
const deliveryRef = {
  version: z.literal(VERSION),
  messageId: z.string().startsWith('msg_').max(64),
  webhookId: z.string().startsWith('wh_').max(64),
  companyId: z.string().startsWith('comp_').max(64),
  appId: z.string().startsWith('app_').max(64).nullable(),
  createdAtMs: z.number().int(),
  erasesPayload: z.literal(true).exactOptional(),
  omitsResponses: z.literal(true).exactOptional(),
  expiresAtMs: z.number().int().exactOptional(),
  removeAtMs: z.number().int().exactOptional(),
};

const messageCreatedSchema = z.object({
  ...deliveryRef,
  trigger: z.enum(['first', 'test']).default('first'),
  /** The webhook was disabled when the message was accepted, see `cancelReasonAtAcceptance`. */
  isCancelled: z.boolean().default(false),
  /** No attempt begins before it. */
  deliverAtMs: z.number().int().exactOptional(),
});

const retryDueSchema = z.object({
  ...deliveryRef,
  attemptNumber: z.number().int().min(1),
  dueAtMs: z.number().int(),
  trigger: z.enum(TRIGGERS).default('retry'),
  /** The delivery has a document, although it may have no attempt. */
  isStored: z.literal(true).exactOptional(),
});

const deliveryFailedSchema = z.object({
  ...deliveryRef,
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
/** A retry, parked until `dueAtMs` and then published to `retry-due` unchanged; or a resend, due at once. */
type RetryDue = Omit<z.input<typeof retryDueSchema>, 'version'>;

/** One attempt that is to be made now, from a message-created or a retry-due record. */
export interface DueAttempt extends DeliveryRef {
  /** Both ids are derived once: five steps need them, and each derivation took 1 % of the dispatcher. */
  deliveryId: string;
  attemptId: string;
  attemptNumber: number;
  trigger: Trigger;
  /** Milliseconds since 1970. */
  dueAtMs: number;
  /** The webhook was disabled when the message was accepted: the delivery is recorded as cancelled. */
  isCancelled: boolean;
  /** No attempt begins before it, in milliseconds since 1970. Only of the record that the message was published with. */
  deliverAtMs?: number;
  /** Its delivery has a document, as far as the record knows: the outcome is an update and no insert. */
  isStored?: true;
  /** Null when the record has no payload. */
  payload: Buffer | null;
}

/** The record cannot be read; it goes to the dead letters. */
export class UnreadableRecordError extends Error {
  override readonly name = 'UnreadableRecordError';
}

/** The value of a message-created record: one JSON line, a newline, then the payload's bytes or nothing. */
export function encodeMessageCreated(created: MessageCreated, payload: Buffer | null): Buffer {
  const line = Buffer.from(`${encode(created)}\n`);
  return payload ? Buffer.concat([line, payload]) : line;
}

/** Throws UnreadableRecordError. */
export function decodeMessageCreated(value: Buffer): DueAttempt {
  const end = value.indexOf(NEWLINE);
  if (end < 0) throw new UnreadableRecordError('no newline after the first line');
  const ref = decode(messageCreatedSchema, value.toString('utf8', 0, end));
  const payload = end + 1 < value.length ? value.subarray(end + 1) : null;
  return { ...ref, ...idsOf(ref, 1), attemptNumber: 1, dueAtMs: ref.createdAtMs, payload };
}

/** Returns a copy of a message-created value without the payload, which is then loaded from the store. */
export function payloadlessValue(value: Buffer): Buffer {
  return Buffer.from(value.subarray(0, value.indexOf(NEWLINE) + 1));
}

export function encodeRetryDue(retry: RetryDue): Buffer {
  return Buffer.from(encode(retry));
}

/** Throws UnreadableRecordError. */
export function decodeRetryDue(value: Buffer): DueAttempt {
  const due = decode(retryDueSchema, value.toString());
  return { ...due, ...idsOf(due, due.attemptNumber), isCancelled: false, payload: null };
}

function idsOf({ messageId, webhookId }: DeliveryRef, attemptNumber: number) {
  const deliveryId = deliveryIdOf(messageId, webhookId);
  return { deliveryId, attemptId: attemptIdOf(deliveryId, attemptNumber) };
}

export function encodeDeliveryFailed(failed: DeliveryFailed): Buffer {
  return Buffer.from(encode(failed));
}

/** Throws UnreadableRecordError. */
export function decodeDeliveryFailed(value: Buffer): DeliveryFailed {
  return decode(deliveryFailedSchema, value.toString());
}

/** Decodes a record from Kafka, and returns an error as a value: a handler that throws would block its partition. */
export function readRecord<T>(decodeValue: () => T): T | UnreadableRecordError {
  try {
    return decodeValue();
  } catch (error) {
    return error instanceof UnreadableRecordError
      ? error
      : new UnreadableRecordError(String(error));
  }
}

function encode(fields: object): string {
  return JSON.stringify({ version: VERSION, ...fields });
}

const versioned = z.object({ version: z.number() });

function decode<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  const fields = parseJson(text);
  const result = schema.safeParse(fields);
  if (result.success) return result.data;
  const { data } = versioned.safeParse(fields);
  if (data && data.version !== VERSION) {
    throw new UnreadableRecordError(
      `a version ${data.version} record, and this process reads version ${VERSION}: replay it when all processes are upgraded`,
    );
  }
  const where = result.error.issues.map((issue) => issue.path.join('.') || 'record');
  throw new UnreadableRecordError(`not a version ${VERSION} record: ${where.join(', ')}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableRecordError('not JSON');
  }
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

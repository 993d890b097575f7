import { z } from 'zod';
import { TRIGGERS, type Trigger } from '../delivery.ts';
import { attemptIdOf, deliveryIdOf } from '../ids.ts';

/** Header of a parked record: when it is due, in milliseconds since 1970. */
export const DUE_AT_HEADER = 'due-at';

/**
 * Header of a record that was deferred or driven again: when its turn is, in milliseconds since 1970.
 * Its attempt may have been made meanwhile, so what is recorded is looked at before it is made.
 */
export const TURN_AT_HEADER = 'turn-at';

/** The largest payload, in bytes, that travels inside its message-created record. */
export const INLINE_PAYLOAD_MAX_BYTES = 16_384;

const VERSION = 1;
const NEWLINE = 0x0a;

/** Identity of one delivery, carried by every record about it. */
const deliveryRef = {
  version: z.literal(VERSION),
  messageId: z.string().startsWith('msg_').max(64),
  webhookId: z.string().startsWith('wh_').max(64),
  companyId: z.string().startsWith('comp_').max(64),
  appId: z.string().startsWith('app_').max(64).nullable(),
  createdAtMs: z.number().int(),
};

const messageCreatedSchema = z.object({
  ...deliveryRef,
  trigger: z.enum(['first', 'test']).default('first'),
  /** The webhook was disabled when the message was accepted. */
  isCancelled: z.boolean().default(false),
});

const retryDueSchema = z.object({
  ...deliveryRef,
  attemptNumber: z.number().int().min(1),
  dueAtMs: z.number().int(),
  trigger: z.enum(TRIGGERS).default('retry'),
});

const deliveryFailedSchema = z.object({
  ...deliveryRef,
  attemptNumber: z.number().int().min(1),
  endedAtMs: z.number().int(),
  outcome: z.string().max(32),
  statusCode: z.number().int().nullable(),
});

export type DeliveryRef = Omit<
  z.infer<typeof messageCreatedSchema>,
  'version' | 'trigger' | 'isCancelled'
>;
/** The first attempt of a delivery. */
export type MessageCreated = Omit<z.input<typeof messageCreatedSchema>, 'version'>;
/** An attempt that failed; published to `delivery-failed`. */
export type DeliveryFailed = Omit<z.infer<typeof deliveryFailedSchema>, 'version'>;
/** A retry, parked until `dueAtMs` and then published to `retry-due` unchanged; or a resend, due at once. */
export type RetryDue = Omit<z.input<typeof retryDueSchema>, 'version'>;

/** One attempt that is to be made now, from either topic. */
export interface DueAttempt extends DeliveryRef {
  /** Derived once here: five steps ask for them, and each took 1 % of the dispatcher. */
  deliveryId: string;
  attemptId: string;
  attemptNumber: number;
  trigger: Trigger;
  dueAtMs: number;
  /** It is only to be recorded as cancelled. */
  isCancelled: boolean;
  /** Null when the record does not carry the payload. */
  payload: Buffer | null;
}

/** A record that no version of this code can read; it goes to the dead letters. */
export class UnreadableRecordError extends Error {}

/** Value of a message-created record: one JSON line, a newline, then the payload's bytes or nothing. */
export function encodeMessageCreated(created: MessageCreated, payload: Buffer | null): Buffer {
  const line = Buffer.from(`${encode(created)}\n`);
  return payload ? Buffer.concat([line, payload]) : line;
}

export function decodeMessageCreated(value: Buffer): DueAttempt {
  const end = value.indexOf(NEWLINE);
  if (end < 0) throw new UnreadableRecordError('no newline after the first line');
  const ref = decode(messageCreatedSchema, value.toString('utf8', 0, end));
  const payload = end + 1 < value.length ? value.subarray(end + 1) : null;
  return { ...ref, ...idsOf(ref, 1), attemptNumber: 1, dueAtMs: ref.createdAtMs, payload };
}

/** A copy of a message-created record without its payload, which is then loaded from the store. */
export function payloadlessValue(value: Buffer): Buffer {
  return Buffer.from(value.subarray(0, value.indexOf(NEWLINE) + 1));
}

export function encodeRetryDue(retry: RetryDue): Buffer {
  return Buffer.from(encode(retry));
}

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

export function decodeDeliveryFailed(value: Buffer): DeliveryFailed {
  return decode(deliveryFailedSchema, value.toString());
}

/**
 * Runs a decoder over a record from outside. Whatever a foreign record makes of it comes back as a
 * value, because a handler that throws would hold its partition.
 */
export function readRecord<T>(decodeValue: () => T): T | UnreadableRecordError {
  try {
    return decodeValue();
  } catch (error) {
    return error instanceof UnreadableRecordError
      ? error
      : new UnreadableRecordError(String(error));
  }
}

/** The fields every record shares, without those of the richer record they are taken from. */
export function refOf(source: DeliveryRef): DeliveryRef {
  const { messageId, webhookId, companyId, appId, createdAtMs } = source;
  return { messageId, webhookId, companyId, appId, createdAtMs };
}

function encode(fields: object): string {
  return JSON.stringify({ version: VERSION, ...fields });
}

function decode<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  const result = schema.safeParse(parseJson(text));
  if (result.success) return result.data;
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

import { eventType as eventTypeSchema, orderingKey, text } from '@posthorn/domain/field-types.ts';
import {
  APP_ID_HEADER,
  CE_ID_HEADER,
  CE_PARTITION_KEY_HEADER,
  CE_SOURCE_HEADER,
  CE_TYPE_HEADER,
  cloudEventKeyOf,
  EVENT_TYPE_HEADER,
  IDEMPOTENCY_KEY_HEADER,
  ingestedKey,
  type IngestPlace,
  type IngestSource,
  OWN_HEADERS_BEGIN,
  placeKeyOf,
  REJECT_HEADERS_BEGIN,
  WEBHOOK_ID_HEADER,
} from '@posthorn/domain/ingest.ts';
import { MAX_BODY_BYTES, MAX_PAYLOAD_DEPTH } from '@posthorn/domain/message.ts';
import {
  EXCLUSIVE_PROBLEM,
  givenIn,
  type GivenFields,
  messageHeaders,
} from '@posthorn/domain/message-fields.ts';
import { traceparentOf } from '@posthorn/domain/request/traceparent.ts';
import type { StoredParts } from '@posthorn/platform/kafka/record-log.ts';
import { hash } from 'node:crypto';
import type { z } from 'zod';
import { ApiError, invalidRequest, type Problem } from '../api-error.ts';
import { assertJsonObject, InvalidJsonError } from '../http/parse-json-object.ts';

/** A record that is a message: what a request of the API says in its body and headers. */
export interface IngestedMessage {
  companyId: string;
  /** One of the two. A `uid:` stands as it was written. */
  appId: string | undefined;
  webhookId: string | undefined;
  eventType: string | null;
  given: GivenFields;
  payload: string;
  key: string;
  /** Records with the same key and the same hash are the same message. */
  bodyHash: string;
  traceparent: string | undefined;
  /** The place of the record, as `placeKeyOf` writes it. */
  place: string;
}

/** Returns the message of a record. Throws ApiError 4xx for a record that can never be one (docs/contract.md C23). */
export function readRecord(
  { key, value, headers }: StoredParts,
  source: IngestSource,
  at: IngestPlace,
): IngestedMessage {
  const payload = readPayload(value);
  const { key: ownKey, impliedKey, ...read } = readHeaders(headers ?? {}, key, source);
  const place = placeKeyOf(at);
  // A record without a key of its own is the same one wherever the source sends it.
  const saying = ownKey === null ? '' : JSON.stringify(contentOf(read));
  const bodyHash = hash('sha256', `${saying}\n${payload}`, 'hex');
  const { companyId } = source;
  // Not part of the hash: a record that was accepted before its key counted is still the same one.
  const given = impliedKey === undefined ? read.given : { ...read.given, orderingKey: impliedKey };
  return { companyId, ...read, given, payload, key: ownKey ?? place, bodyHash, place };
}

/** A record keeps its hash when fields are added that it does not have. */
function contentOf({
  appId,
  webhookId,
  eventType,
  given,
}: Omit<ReadHeaders, 'key' | 'impliedKey'>): unknown[] {
  const { tags = [], ...others } = given;
  const hasOthers = Object.keys(others).length > 0;
  return [appId, webhookId, eventType, tags, ...(hasOthers ? [others] : [])];
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const BYTE_ORDER_MARK = '\ufeff';

/** Serializers of a schema registry write a zero and the id of the schema before the value. No JSON begins with a zero byte. */
function schemaIdOf(value: Buffer): number | null {
  return value[0] === 0 && value.length > 5 ? value.readUInt32BE(1) : null;
}

/** The text of the value, byte for byte: it is delivered so. */
function readPayload(value: Buffer | null): string {
  if (value === null || value.length === 0) throw notAcceptable('it is empty');
  if (value.length > MAX_BODY_BYTES) {
    throw new ApiError('body_too_large', `The value is larger than ${MAX_BODY_BYTES} bytes.`);
  }
  const schemaId = schemaIdOf(value);
  if (schemaId !== null) {
    throw notAcceptable(
      `it begins with the five bytes of a schema registry (0 and the schema id ${schemaId}): write plain JSON`,
    );
  }
  const payload = decode(value);
  if (payload === null) throw notAcceptable('not valid UTF-8');
  if (payload.startsWith(BYTE_ORDER_MARK)) throw notAcceptable('starts with a byte-order mark');
  try {
    assertJsonObject(payload, MAX_PAYLOAD_DEPTH);
  } catch (error) {
    if (error instanceof InvalidJsonError) throw notAcceptable(error.message);
    throw error;
  }
  return payload;
}

const notAcceptable = (why: string): ApiError =>
  new ApiError('invalid_json', `The value is not acceptable: ${why}.`);

function decode(bytes: Buffer): string | null {
  try {
    return UTF8.decode(bytes);
  } catch {
    return null;
  }
}

type ReadHeaders = Pick<
  IngestedMessage,
  'appId' | 'webhookId' | 'eventType' | 'given' | 'traceparent'
> & {
  /** Null for a record without a key of its own. */
  key: string | null;
  /** The ordering key of a record without a header of Posthorn for it. */
  impliedKey: string | undefined;
};

const idSchema = text(1, 132);

const TRACEPARENT = 'traceparent';

const KNOWN: ReadonlySet<string> = new Set([
  APP_ID_HEADER,
  WEBHOOK_ID_HEADER,
  EVENT_TYPE_HEADER,
  IDEMPOTENCY_KEY_HEADER,
  ...messageHeaders.map(({ header }) => header),
]);

function readHeaders(
  headers: NonNullable<StoredParts['headers']>,
  recordKey: Buffer | null,
  source: IngestSource,
): ReadHeaders {
  const problems: Problem[] = unknownAmong(headers);
  const read = (name: string): string | undefined => readText(headers, name, problems);
  const check = <Schema extends z.ZodType>(
    schema: Schema,
    name: string,
    given: z.input<Schema> | undefined,
  ): z.output<Schema> | undefined => checked(schema, { name, given }, problems);
  const address = addressOf(
    {
      appId: check(idSchema, APP_ID_HEADER, read(APP_ID_HEADER)),
      webhookId: check(idSchema, WEBHOOK_ID_HEADER, read(WEBHOOK_ID_HEADER)),
    },
    source,
    problems,
  );
  const typeHeader = typeHeaders(source).find((name) => read(name) !== undefined);
  const eventType =
    typeHeader === undefined ? undefined : check(eventTypeSchema, typeHeader, read(typeHeader));
  const fields = messageHeaders.map(({ field, header, schema, fromHeader }) => {
    const found = read(header);
    return [field, check(schema, header, found === undefined ? undefined : fromHeader(found))];
  });
  const key = check(ingestedKey, IDEMPOTENCY_KEY_HEADER, read(IDEMPOTENCY_KEY_HEADER));
  const eventKey = cloudEventKeyOf(read(CE_SOURCE_HEADER), read(CE_ID_HEADER));
  const given = givenIn(Object.fromEntries(fields) as Partial<Record<string, unknown>>);
  const impliedKey =
    given.orderingKey === undefined
      ? impliedOrderingKey(read(CE_PARTITION_KEY_HEADER), recordKey, source, problems)
      : undefined;
  if (given.deliverAtMs !== undefined && (given.orderingKey ?? impliedKey) !== undefined) {
    note(problems, { path: 'posthorn-deliver-at', message: EXCLUSIVE_PROBLEM });
  }
  if (problems.length > 0) throw invalidRequest(problems);
  return {
    ...address,
    eventType: eventType ?? null,
    given,
    impliedKey,
    key: key ?? eventKey,
    traceparent: traceparentOf(read(TRACEPARENT)),
  };
}

function addressOf(
  { appId, webhookId }: Pick<ReadHeaders, 'appId' | 'webhookId'>,
  source: IngestSource,
  problems: Problem[],
): Pick<ReadHeaders, 'appId' | 'webhookId'> {
  if (appId !== undefined && webhookId !== undefined) {
    problems.push({
      path: APP_ID_HEADER,
      message: 'must not be given together with posthorn-webhook-id',
    });
  }
  const ownAppId = webhookId === undefined ? (appId ?? source.appId) : undefined;
  const isAddressed = ownAppId !== undefined || webhookId !== undefined;
  const isRefused = problems.some(
    ({ path }) => path === APP_ID_HEADER || path === WEBHOOK_ID_HEADER,
  );
  if (!isAddressed && !isRefused) {
    problems.push({ path: APP_ID_HEADER, message: 'is required, or posthorn-webhook-id' });
  }
  return { appId: ownAppId, webhookId };
}

/** The partition key of a CloudEvent, else the key of the record where the source wants that. */
function impliedOrderingKey(
  partitionKey: string | undefined,
  recordKey: Buffer | null,
  { orderingKeyFromRecordKey }: IngestSource,
  problems: Problem[],
): string | undefined {
  if (partitionKey !== undefined) {
    return checked(orderingKey, { name: CE_PARTITION_KEY_HEADER, given: partitionKey }, problems);
  }
  if (!orderingKeyFromRecordKey || recordKey === null) return undefined;
  const given = decode(recordKey);
  if (given === null) note(problems, { path: RECORD_KEY, message: 'is not valid UTF-8' });
  return given === null ? undefined : checked(orderingKey, { name: RECORD_KEY, given }, problems);
}

/** The key of the record in problems, beside the names of headers. */
const RECORD_KEY = 'key of the record';

/** The headers that may have the event type, the most specific first. */
function typeHeaders({ eventTypeHeader = CE_TYPE_HEADER }: IngestSource): string[] {
  return [EVENT_TYPE_HEADER, eventTypeHeader, CE_TYPE_HEADER];
}

/** Of a name that a producer chose. */
const SHOWN_CHARS = 128;

/** A misspelled header must not send a message elsewhere. */
function unknownAmong(headers: object): Problem[] {
  return Object.keys(headers)
    .filter((name) => {
      const lower = name.toLowerCase();
      if (!lower.startsWith(OWN_HEADERS_BEGIN) || lower.startsWith(REJECT_HEADERS_BEGIN))
        return false;
      return !KNOWN.has(name);
    })
    .map((name) => ({
      path: name.slice(0, SHOWN_CHARS),
      message: 'is not a header of an ingested record',
    }));
}

/** Returns undefined for a header that is missing or has no value. */
function readText(
  headers: NonNullable<StoredParts['headers']>,
  name: string,
  problems: Problem[],
): string | undefined {
  if (!Object.hasOwn(headers, name)) return undefined;
  // kafkajs reads a header without a value as null, which its types leave out.
  const given = headers[name] as (typeof headers)[string] | null;
  if (given === undefined || given === null) return undefined;
  if (Array.isArray(given)) {
    note(problems, { path: name, message: 'is given more than once' });
    return undefined;
  }
  const decoded = typeof given === 'string' ? given : decode(given);
  if (decoded === null) note(problems, { path: name, message: 'is not valid UTF-8' });
  return decoded ?? undefined;
}

function note(problems: Problem[], problem: Problem): void {
  if (!problems.some(({ path }) => path === problem.path)) problems.push(problem);
}

function checked<Schema extends z.ZodType>(
  schema: Schema,
  { name, given }: { name: string; given: unknown },
  problems: Problem[],
): z.output<Schema> | undefined {
  if (given === undefined) return undefined;
  const { data, error } = schema.safeParse(given);
  for (const { message } of error?.issues ?? []) note(problems, { path: name, message });
  return data;
}

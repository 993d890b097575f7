import { InvalidJsonError, parseJsonObject, TooManyMembersError } from './parse-json-object.ts';
import { MAX_PAYLOAD_DEPTH } from '@posthorn/domain/message/message.ts';
import type { z } from 'zod';
import { ApiError, invalidRequest, type Problem } from '../api-error.ts';
import { checkFields, rawFields, TOO_MANY_FIELDS } from './read-fields.ts';

export interface Body<T> {
  value: T;
  /** Returns the text of a field as the client wrote it; undefined when it is absent. */
  textOf: (name: string) => string | undefined;
  /** The whole body as it was received. */
  bytes: Buffer;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const BYTE_ORDER_MARK = '\ufeff';

/**
 * Parses and validates a body. Throws ApiError 400 with every problem, `earlier` ones included: those that
 * were found outside the body.
 */
export function readBody<Schema extends z.ZodObject>(
  bytes: Buffer,
  schema: Schema,
  earlier: readonly Problem[] = [],
): Body<z.infer<Schema>> {
  const { value: members, textOf } = readObject(decode(bytes));
  const checked = checkFields(members, schema, 'is not a field of this request');
  const { value, writtenAs } = checked;
  const problems = [...earlier, ...checked.problems, ...illFormedTexts(members)];
  if (value === null || problems.length > 0) throw invalidRequest(problems);
  return { value, bytes, textOf: (name) => textOf(writtenAs.get(name) ?? name) };
}

/** Returns the fields without validation. Throws ApiError 400 if the body is not a JSON object. */
export function readRawFields(bytes: Buffer, schema: z.ZodObject): Record<string, unknown> {
  return rawFields(readObject(decode(bytes)).value, schema);
}

/** The store would replace half of a surrogate pair by another character. The payload is exempt: its bytes are kept. */
function illFormedTexts(members: Record<string, unknown>): Problem[] {
  const fields = Object.entries(members).filter(([name]) => name !== 'payload');
  return fields.flatMap(([path, value]) => illFormedIn(value, path));
}

/** A body is at most 64 levels deep (MAX_PAYLOAD_DEPTH). */
function illFormedIn(value: unknown, path: string): Problem[] {
  if (typeof value === 'string') {
    return value.isWellFormed() ? [] : [{ path, message: 'contains half of a surrogate pair' }];
  }
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, each]) => illFormedIn(each, `${path}.${name}`));
}

function decode(bytes: Buffer): string {
  try {
    const text = UTF8.decode(bytes);
    if (!text.startsWith(BYTE_ORDER_MARK)) return text;
  } catch {
    throw new ApiError(400, 'invalid_json', 'The body is not valid UTF-8.');
  }
  throw new ApiError(400, 'invalid_json', 'The body starts with a byte-order mark. Leave it out.');
}

function readObject(text: string): ReturnType<typeof parseJsonObject> {
  try {
    return parseJsonObject(text, MAX_PAYLOAD_DEPTH, 'payload');
  } catch (error) {
    if (error instanceof TooManyMembersError) throw invalidRequest([TOO_MANY_FIELDS]);
    if (!(error instanceof InvalidJsonError)) throw error;
    throw new ApiError(400, 'invalid_json', `The body is not acceptable: ${error.message}.`);
  }
}

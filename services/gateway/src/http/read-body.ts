import { JsonTextError, readJsonObject } from './json-members.ts';
import { MAX_PAYLOAD_DEPTH } from '@posthorn/domain/message.ts';
import type { z } from 'zod';
import { ApiError, invalidRequest, type Problem } from './api-error.ts';
import { checkFields, rawFields } from './read-fields.ts';

export interface Body<T> {
  value: T;
  /** The text of a member as the client wrote it. */
  textOf: (name: string) => string | undefined;
  /** The whole body as it came. */
  bytes: Buffer;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const BYTE_ORDER_MARK = '\ufeff';

/**
 * From bytes to a checked value. A key given twice is refused. Throws ApiError with every problem,
 * those that were found before the body included.
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

/** The fields as they came, for checks that need more than the schema. Throws ApiError when it is no JSON. */
export function readRawFields(bytes: Buffer, schema: z.ZodObject): Record<string, unknown> {
  return rawFields(readObject(decode(bytes)).value, schema);
}

/** The payload's text is never touched; in any other field half a character would be stored as another one. */
function illFormedTexts(members: Record<string, unknown>): Problem[] {
  const fields = Object.entries(members).filter(([name]) => name !== 'payload');
  return fields.flatMap(([path, value]) => {
    const isIllFormed = typeof value === 'string' && !value.isWellFormed();
    return isIllFormed ? [{ path, message: 'holds half of a surrogate pair' }] : [];
  });
}

function decode(bytes: Buffer): string {
  try {
    const text = UTF8.decode(bytes);
    if (!text.startsWith(BYTE_ORDER_MARK)) return text;
  } catch {
    throw new ApiError(400, 'invalid_json', 'The body is not valid UTF-8.');
  }
  throw new ApiError(400, 'invalid_json', 'The body begins with a byte-order mark; leave it out.');
}

function readObject(text: string): ReturnType<typeof readJsonObject> {
  try {
    return readJsonObject(text, MAX_PAYLOAD_DEPTH, 'payload');
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    throw new ApiError(400, 'invalid_json', `The body cannot be used: ${error.message}.`);
  }
}

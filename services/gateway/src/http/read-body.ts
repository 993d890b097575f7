import { JsonTextError, readJsonObject } from '@posthorn/domain/json-members.ts';
import { MAX_PAYLOAD_DEPTH } from '@posthorn/domain/message.ts';
import type { z } from 'zod';
import { ApiError, invalidRequest, type Problem } from './api-error.ts';

export interface Body<T> {
  value: T;
  /** The text of a member as the client wrote it. */
  textOf: (name: string) => string | undefined;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const BYTE_ORDER_MARK = '\ufeff';

/**
 * From bytes to a checked value. Keys may be written in camelCase or snake_case; unknown keys, two
 * different spellings of one key, and a key given twice are refused. Throws ApiError with every problem.
 */
export function readBody<Schema extends z.ZodObject>(
  bytes: Buffer,
  schema: Schema,
): Body<z.infer<Schema>> {
  const { value, textOf } = readObject(decode(bytes));
  const problems: Problem[] = [];
  const spelled = inCamelCase(value, new Set(Object.keys(schema.shape)), problems);
  const result = schema.strict().safeParse(spelled.fields, { reportInput: true });
  if (!result.success) problems.push(...result.error.issues.flatMap(problemsOf));
  if (!result.success || problems.length > 0) throw invalidRequest(problems);
  return {
    value: result.data as z.infer<Schema>,
    textOf: (name) => textOf(spelled.writtenAs.get(name) ?? name),
  };
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
    return readJsonObject(text, MAX_PAYLOAD_DEPTH);
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    throw new ApiError(400, 'invalid_json', `The body cannot be used: ${error.message}.`);
  }
}

interface Spelled {
  fields: Record<string, unknown>;
  /** Field name → the key that the client used. */
  writtenAs: Map<string, string>;
}

function inCamelCase(
  value: Record<string, unknown>,
  known: ReadonlySet<string>,
  problems: Problem[],
): Spelled {
  const fields: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  const writtenAs = new Map<string, string>();
  for (const [key, member] of Object.entries(value)) {
    const name = known.has(key) ? key : camelCase(key);
    const field = known.has(name) ? name : key;
    if (field in fields && JSON.stringify(fields[field]) !== JSON.stringify(member)) {
      problems.push({
        path: field,
        message: `is given as ${writtenAs.get(field) ?? field} and as ${key}, with different values`,
      });
    }
    fields[field] = member;
    writtenAs.set(field, key);
  }
  return { fields, writtenAs };
}

function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  const at = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: [...at, key].join('.'),
      message: 'is not a field of this request',
    }));
  }
  const isMissing = issue.code === 'invalid_type' && issue.input === undefined;
  return [{ path: at.join('.'), message: isMissing ? 'is required' : issue.message }];
}

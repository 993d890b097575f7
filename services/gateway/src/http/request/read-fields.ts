import type { z } from 'zod';
import type { Problem } from '../api-error.ts';
import { MAX_MEMBERS } from './parse-json-object.ts';

export const TOO_MANY_FIELDS: Problem = {
  path: '',
  message: `must have at most ${MAX_MEMBERS} fields`,
};

export interface CheckedFields<T> {
  /** Null when there are problems. */
  value: T | null;
  problems: Problem[];
  /** The key that the client used, by field name. */
  writtenAs: ReadonlyMap<string, string>;
}

/**
 * Validates the members of a body or query string. Keys may be written in camelCase or snake_case. Unknown
 * keys and two spellings of one key with different values are problems. Returns every problem, not only
 * the first. `unknownMessage` is the message for an unknown key.
 */
export function checkFields<Schema extends z.ZodObject>(
  members: Record<string, unknown>,
  schema: Schema,
  unknownMessage: string,
): CheckedFields<z.infer<Schema>> {
  if (Object.keys(members).length > MAX_MEMBERS) {
    return { value: null, problems: [TOO_MANY_FIELDS], writtenAs: new Map() };
  }
  const problems: Problem[] = [];
  const { fields, writtenAs } = inCamelCase(members, new Set(Object.keys(schema.shape)), problems);
  const result = strictOf(schema).safeParse(fields, { reportInput: true });
  if (!result.success) {
    problems.push(...result.error.issues.flatMap((issue) => problemsOf(issue, unknownMessage)));
  }
  const isGood = result.success && problems.length === 0;
  return { value: isGood ? (result.data as z.infer<Schema>) : null, problems, writtenAs };
}

const strictSchemas = new WeakMap<z.ZodObject, z.ZodObject>();

/**
 * Creates each strict schema once: zod compiles a schema at its first use, which took 60 µs of every request instead of
 * 3.
 */
function strictOf(schema: z.ZodObject): z.ZodObject {
  const known = strictSchemas.get(schema);
  if (known) return known;
  const strict = schema.strict();
  strictSchemas.set(schema, strict);
  return strict;
}

/** Returns the members under their camelCase names, without validation. */
export function rawFields(
  members: Record<string, unknown>,
  schema: z.ZodObject,
): Record<string, unknown> {
  return inCamelCase(members, new Set(Object.keys(schema.shape)), []).fields;
}

function inCamelCase(
  members: Record<string, unknown>,
  known: ReadonlySet<string>,
  problems: Problem[],
): { fields: Record<string, unknown>; writtenAs: Map<string, string> } {
  const fields = Object.create(null) as Record<string, unknown>;
  const writtenAs = new Map<string, string>();
  for (const [key, member] of Object.entries(members)) {
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

function problemsOf(issue: z.core.$ZodIssue, unknownMessage: string): Problem[] {
  const at = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...at, key].join('.'), message: unknownMessage }));
  }
  const isMissing = issue.code === 'invalid_type' && issue.input === undefined;
  return [{ path: at.join('.'), message: isMissing ? 'is required' : issue.message }];
}

import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema';
import { checkedPartOf } from '@posthorn/domain/catalogue/event-schema.ts';
import type { Json } from '@posthorn/domain/filter.ts';

/*
 * Checks payloads by the schema of an event type. It runs in a worker thread with a time limit (check-worker.ts), because a
 * schema may be slow on purpose. The interpreter generates no code.
 */

/** A place of a payload that does not meet the schema. */
export interface PayloadProblem {
  /** Such as `payload.items.0.sku`; that of a missing property is its own. */
  path: string;
  message: string;
}

/** What became of a check. `fault`: the payload cannot be checked by this schema, such as one that refers to itself without end. */
export type CheckResult = { problems: PayloadProblem[] } | { fault: string };

export type CheckPayload = (payload: string) => CheckResult;

const MAX_PROBLEMS = 20;
const MAX_MESSAGE_CHARS = 200;
/**
 * Of longer payloads only the first problems are found: with those of all 130,000 elements of a list, an honest schema would
 * need more time than it has.
 */
const ALL_PROBLEMS_UP_TO_CHARS = 16_384;

/** Takes the text of a checked schema. */
export function compileSchema(schemaText: string): CheckPayload {
  const schema = checkedPartOf(JSON.parse(schemaText) as Json) as Schema;
  const quick = new Validator(schema, '2020-12', true);
  const thorough = new Validator(schema, '2020-12', false);
  return (text) => {
    try {
      const payload = withoutPrototypes(JSON.parse(text));
      const first = quick.validate(payload);
      if (first.valid) return { problems: [] };
      const errors =
        text.length > ALL_PROBLEMS_UP_TO_CHARS ? first.errors : thorough.validate(payload).errors;
      return { problems: problemsIn(errors) };
    } catch (error) {
      return { fault: error instanceof Error ? error.message : String(error) };
    }
  };
}

/** A property such as `constructor` would otherwise be in every object. */
function withoutPrototypes(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (!Array.isArray(value)) Object.setPrototypeOf(value, null);
  for (const each of Object.values(value)) withoutPrototypes(each);
  return value;
}

/** Errors of these only introduce those of the schemas within. */
const WRAPPERS: ReadonlySet<string> = new Set([
  '$ref',
  'allOf',
  'if',
  'dependentSchemas',
  'properties',
  'patternProperties',
  'additionalProperties',
  'propertyNames',
  'items',
  'prefixItems',
]);
/** The keyword whose errors within are about alternatives, by that of the error that says so. */
const ALTERNATIVES: Readonly<Record<string, string>> = {
  anyOf: 'anyOf',
  oneOf: 'oneOf',
  minContains: 'contains',
};
/** Of which problems are chosen. */
const MAX_ERRORS = 1_000;

function problemsIn(all: readonly OutputUnit[]): PayloadProblem[] {
  const errors = all.slice(0, MAX_ERRORS);
  const scopes = errors.flatMap(({ keyword, keywordLocation, instanceLocation }) => {
    const within = ALTERNATIVES[keyword];
    const place = keywordLocation.slice(0, keywordLocation.lastIndexOf('/'));
    return within === undefined ? [] : [{ instanceLocation, beginning: `${place}/${within}/` }];
  });
  const isAlternative = (error: OutputUnit): boolean =>
    scopes.some(
      ({ instanceLocation, beginning }) =>
        error.instanceLocation.startsWith(instanceLocation) &&
        error.keywordLocation.startsWith(beginning),
    );
  const problems = new Map<string, PayloadProblem>();
  for (const error of errors) {
    if (WRAPPERS.has(error.keyword) || isAlternative(error)) continue;
    const problem = problemOf(error);
    // The interpreter takes a property that does not meet its schema for an additional one too.
    if (!problems.has(problem.path)) problems.set(problem.path, problem);
    if (problems.size === MAX_PROBLEMS) break;
  }
  return [...problems.values()];
}

const REQUIRED = /^Instance does not have required property "(.*)"\.$/s;

function problemOf({ keyword, instanceLocation, error }: OutputUnit): PayloadProblem {
  const path = pathOf(instanceLocation);
  const missing = keyword === 'required' ? REQUIRED.exec(error)?.[1] : undefined;
  if (missing !== undefined) return { path: `${path}.${missing}`, message: 'is required' };
  if (keyword === 'false') return { path, message: 'is not allowed' };
  return { path, message: error.slice(0, MAX_MESSAGE_CHARS) };
}

/** `#/items/0/sku` is `payload.items.0.sku`. */
function pathOf(location: string): string {
  const keys = location.split('/').slice(1);
  const plain = keys.map((key) => decodeURI(key).replaceAll('~1', '/').replaceAll('~0', '~'));
  return ['payload', ...plain].join('.');
}

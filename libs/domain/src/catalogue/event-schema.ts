import { isList, isObject, type Json, type JsonObject } from '../filter.ts';

/*
 * The JSON Schema of an event type (docs/contract.md C28.4): draft 2020-12 with the keywords that payloads are checked
 * by, and notes for people. What would not be checked is refused, so that nobody relies on it.
 */

export const MAX_SCHEMA_BYTES = 32_768;
const MAX_LEVELS = 32;
const MAX_OBJECTS = 2_000;
/** Of one schema that are reported. */
const MAX_PROBLEMS = 20;

const DIALECT = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

export interface SchemaProblem {
  path: string[];
  message: string;
}

/** How the value of a keyword is checked: as subschemas, or by itself. */
type Rule =
  | { has: 'schema' | 'schemas' | 'schemas by name' | 'schemas by pattern' }
  | { has: 'value'; isRight: (value: Json) => boolean; message: string };

const value = (isRight: (value: Json) => boolean, message: string): Rule => ({
  has: 'value',
  isRight,
  message,
});

const isText = (each: Json): each is string => typeof each === 'string';
const isCount = (each: Json): boolean =>
  typeof each === 'number' && Number.isSafeInteger(each) && each >= 0;
const isTexts = (each: Json): boolean =>
  isList(each) && each.every(isText) && new Set(each).size === each.length;

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];
const isType = (each: Json): boolean => isText(each) && TYPES.includes(each);

/** The formats that are checked. */
// prettier-ignore
export const FORMATS: ReadonlySet<string> = new Set([
  'date', 'time', 'date-time', 'duration', 'uri', 'uri-reference', 'uri-template', 'email', 'hostname', 'ipv4', 'ipv6',
  'uuid', 'regex', 'json-pointer', 'relative-json-pointer',
]);

const ONE: Rule = { has: 'schema' };
const LIST: Rule = { has: 'schemas' };
const BY_NAME: Rule = { has: 'schemas by name' };
const NUMBER = value((each) => typeof each === 'number', 'must be a number');
const COUNT = value(isCount, 'must be a whole number from 0');
const TEXTS = value(isTexts, 'must be a list of different texts');
const FLAG = value((each) => typeof each === 'boolean', 'must be true or false');

/** The keywords by which payloads are checked, and `$defs`. */
const CHECKED: Readonly<Record<string, Rule>> = {
  $ref: value(
    (each) => isText(each) && /^#(\/|$)/.test(each),
    'must point into this schema, such as #/$defs/Address',
  ),
  $defs: BY_NAME,
  definitions: BY_NAME,
  allOf: LIST,
  anyOf: LIST,
  oneOf: LIST,
  not: ONE,
  if: ONE,
  then: ONE,
  else: ONE,
  properties: BY_NAME,
  patternProperties: { has: 'schemas by pattern' },
  additionalProperties: ONE,
  propertyNames: ONE,
  dependentSchemas: BY_NAME,
  dependentRequired: value(
    (each) => isObject(each) && Object.values(each).every(isTexts),
    'must be lists of different texts by name',
  ),
  prefixItems: LIST,
  items: ONE,
  contains: ONE,
  type: value(
    (each) =>
      isType(each) || (isTexts(each) && isList(each) && each.length > 0 && each.every(isType)),
    `must be one of ${TYPES.join(', ')}, or a list of them`,
  ),
  const: value(() => true, ''),
  enum: value((each) => isList(each) && each.length > 0, 'must be a list with an entry'),
  multipleOf: value((each) => typeof each === 'number' && each > 0, 'must be a number above 0'),
  minimum: NUMBER,
  maximum: NUMBER,
  exclusiveMinimum: NUMBER,
  exclusiveMaximum: NUMBER,
  minLength: COUNT,
  maxLength: COUNT,
  minItems: COUNT,
  maxItems: COUNT,
  minContains: COUNT,
  maxContains: COUNT,
  minProperties: COUNT,
  maxProperties: COUNT,
  uniqueItems: FLAG,
  required: TEXTS,
  pattern: value((each) => isText(each) && isPattern(each), 'must be a regular expression'),
  format: value(
    (each) => isText(each) && FORMATS.has(each),
    `must be a format that is checked: ${[...FORMATS].join(', ')}`,
  ),
};

/** The keywords that only people and their tools read. `discriminator` and those after it are OpenAPI's. */
// prettier-ignore
const NOTES: ReadonlySet<string> = new Set([
  'title', 'description', 'default', 'deprecated', 'readOnly', 'writeOnly', 'examples', '$comment',
  'contentEncoding', 'contentMediaType', 'contentSchema', 'discriminator', 'example', 'externalDocs', 'xml',
]);

const isNote = (keyword: string): boolean => NOTES.has(keyword) || keyword.startsWith('x-');

function isPattern(text: string): boolean {
  try {
    new RegExp(text, 'u');
    return true;
  } catch {
    return false;
  }
}

/** The schemas of a document by their places, as the pointers of `$ref` name them. */
type Places = Map<string, JsonObject | boolean>;

interface Check {
  problems: SchemaProblem[];
  places: Places;
}

/** Returns the first 20 problems of a schema; none when payloads can be checked by it. `given` is what JSON.parse returned. */
export function problemsOfSchema(given: unknown): SchemaProblem[] {
  const schema = given as Json;
  if (!isObject(schema)) return [{ path: [], message: 'must be an object' }];
  const tooLarge = problemOfSize(schema);
  if (tooLarge) return [tooLarge];
  const check: Check = { problems: [], places: new Map() };
  checkSchema(schema, [], check);
  checkReferences(check);
  return check.problems.slice(0, MAX_PROBLEMS);
}

function problemOfSize(schema: JsonObject): SchemaProblem | null {
  const counted = { objects: 0 };
  const problem = problemOfJson(schema, { maxLevels: MAX_LEVELS, counted });
  if (problem) return problem;
  if (counted.objects > MAX_OBJECTS) {
    return { path: [], message: `must have at most ${MAX_OBJECTS} objects` };
  }
  if (Buffer.byteLength(JSON.stringify(schema)) > MAX_SCHEMA_BYTES) {
    return { path: [], message: `must have at most ${MAX_SCHEMA_BYTES} bytes as JSON` };
  }
  return null;
}

interface JsonBounds {
  maxLevels: number;
  /** Gets the number of objects and lists. */
  counted?: { objects: number };
}

/** Returns the first number or level beyond what is stored as JSON: a number such as 1e400 would become null. */
export function problemOfJson(
  value: Json,
  bounds: JsonBounds,
  path: string[] = [],
): SchemaProblem | null {
  if (typeof value === 'number' && !Number.isFinite(value))
    return { path, message: 'is too large' };
  if (typeof value !== 'object' || value === null) return null;
  const { maxLevels, counted } = bounds;
  if (path.length >= maxLevels) return { path, message: `is below ${maxLevels} levels` };
  if (counted) counted.objects += 1;
  for (const [key, each] of Object.entries(value)) {
    const problem = problemOfJson(each, bounds, [...path, key]);
    if (problem) return problem;
  }
  return null;
}

function checkSchema(schema: Json, path: string[], check: Check): void {
  if (typeof schema === 'boolean' || isObject(schema)) check.places.set(pointerTo(path), schema);
  if (typeof schema === 'boolean') return;
  if (!isObject(schema)) {
    check.problems.push({ path, message: 'must be a schema: an object, true or false' });
    return;
  }
  for (const [keyword, inner] of Object.entries(schema)) {
    if (check.problems.length >= MAX_PROBLEMS) return;
    checkKeyword(keyword, inner, [...path, keyword], check);
  }
}

function checkKeyword(keyword: string, inner: Json, path: string[], check: Check): void {
  if (isNote(keyword)) return;
  const message = Object.hasOwn(CHECKED, keyword)
    ? problemOfValue(CHECKED[keyword], inner, path, check)
    : problemOfOther(keyword, inner, path);
  if (message !== null) check.problems.push({ path, message });
}

function problemOfValue(
  rule: Rule | undefined,
  inner: Json,
  path: string[],
  check: Check,
): string | null {
  switch (rule?.has) {
    case 'schema':
      checkSchema(inner, path, check);
      return null;
    case 'schemas':
      if (!isList(inner) || inner.length === 0) return 'must be a list with a schema';
      checkEach(inner, path, check);
      return null;
    case 'schemas by name':
      if (!isObject(inner)) return 'must be an object of schemas';
      checkEach(inner, path, check);
      return null;
    case 'schemas by pattern':
      if (!isObject(inner)) return 'must be an object of schemas';
      if (!Object.keys(inner).every(isPattern)) return 'must have regular expressions as names';
      checkEach(inner, path, check);
      return null;
    case 'value':
      return rule.isRight(inner) ? null : rule.message;
    case undefined:
      return null;
  }
}

function checkEach(schemas: JsonObject | readonly Json[], path: string[], check: Check): void {
  for (const [key, each] of Object.entries(schemas)) checkSchema(each, [...path, key], check);
}

/** A schema names its dialect and itself at its top only. */
function problemOfOther(keyword: string, inner: Json, { length: level }: string[]): string | null {
  if (level === 1 && keyword === '$id' && isText(inner)) return null;
  if (level === 1 && keyword === '$schema') {
    return isText(inner) && DIALECT.test(inner)
      ? null
      : 'must be https://json-schema.org/draft/2020-12/schema';
  }
  return 'is not checked here: use keywords of JSON Schema 2020-12 that docs/event-types.md lists, or x-…';
}

function checkReferences({ places, problems }: Check): void {
  for (const [pointer, schema] of places) {
    const reference = typeof schema === 'boolean' ? null : schema.$ref;
    if (typeof reference !== 'string' || !reference.startsWith('#')) continue;
    if (places.has(pointerOf(reference))) continue;
    const path = [...tokensOf(pointer), '$ref'];
    problems.push({ path, message: 'points to no schema within this one' });
  }
}

/** RFC 6901. */
function pointerTo(path: readonly string[]): string {
  return path.map((key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function tokensOf(pointer: string): string[] {
  const [, ...keys] = pointer.split('/');
  return keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Returns the pointer in a `$ref`, whose characters may be percent-encoded (RFC 6901, 6). */
function pointerOf(reference: string): string {
  try {
    return decodeURIComponent(reference.slice(1));
  } catch {
    return reference.slice(1);
  }
}

/**
 * Returns the part of a checked schema by which payloads are checked, as the interpreter (check-payload.ts of the gateway)
 * understands it: without notes, whose values may look like schemas, with each `$ref` in the one spelling that `encodeURI`
 * gives its pointer, with `dependentRequired` as `dependentSchemas`, because names of properties may look like keywords,
 * and with the `minContains` that is meant where none is given.
 */
export function checkedPartOf(schema: Json): Json {
  if (!isObject(schema)) return schema;
  const { dependentRequired, ...others } = schema;
  const parts = Object.entries(others).flatMap(([keyword, inner]): [string, Json][] => {
    const rule = Object.hasOwn(CHECKED, keyword) ? CHECKED[keyword] : undefined;
    return rule ? [[keyword, checkedValueOf(keyword, rule, inner)]] : [];
  });
  const part = Object.fromEntries(parts);
  const { allOf = [] } = part as { allOf?: readonly Json[] };
  return {
    ...part,
    ...(dependentRequired !== undefined && { allOf: [...allOf, requiredBy(dependentRequired)] }),
    ...(part.contains !== undefined && { minContains: part.minContains ?? 1 }),
  };
}

function requiredBy(dependentRequired: Json): Json {
  const names = Object.entries(dependentRequired as Record<string, Json>);
  const schemas = names.map(([name, required]) => [name, { required }]);
  return { dependentSchemas: Object.fromEntries(schemas) as Json };
}

function checkedValueOf(keyword: string, rule: Rule, inner: Json): Json {
  if (keyword === '$ref' && isText(inner)) return `#${encodeURI(pointerOf(inner))}`;
  if (rule.has === 'value') return inner;
  if (rule.has === 'schema') return checkedPartOf(inner);
  if (isList(inner)) return inner.map(checkedPartOf);
  const named = Object.entries(inner as JsonObject);
  return Object.fromEntries(named.map(([name, each]) => [name, checkedPartOf(each)]));
}

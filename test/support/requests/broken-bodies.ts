import fc from 'fast-check';
import type { JsonSchema, Operation, CompileSchema } from '../api/api-document.ts';
import { createShapes, resolve } from './schema-values.ts';
import { plainBodyOf, withJsonType, type Draft, type RequestDeps } from './valid-requests.ts';
import { snakeCase, toWire, type Broken } from './wire-request.ts';

type Body = Record<string, unknown>;

const UNKNOWN_FIELDS = [
  ...['surprise', 'Name', '$gt', '$where', 'constructor', 'prototype', 'toString', 'a.b', 'id', ''],
  ...['company', 'companyId', '_id', 'auth_methods', '__proto__'],
];

/** Generates JSON bodies that the document forbids. */
export function brokenBodies(
  deps: RequestDeps,
  { body }: Operation,
  drafts: fc.Arbitrary<Draft>,
): Broken[] {
  const schema = resolve(plainBodyOf(body?.schema ?? {}), deps.named);
  const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
  const check = deps.compile(schema);
  const withBody = (what: string, change: fc.Arbitrary<(body: Body) => Body>): Broken =>
    fc
      .tuple(drafts, change)
      .map(([draft, apply]) => ({ draft, body: apply(draft.body ?? {}) }))
      .filter(({ body: changed }) => !check(changed))
      .map(({ draft, body: changed }) => toWire({ ...withJsonType(draft), body: changed }, what));

  const wrong = Object.entries(properties).map(([field, each]) =>
    violationsOf(each, deps.named, deps.compile).map((value) => (given: Body): Body => ({
      ...given,
      [field]: value,
    })),
  );
  const unknown = fc
    .tuple(fc.constantFrom(...UNKNOWN_FIELDS), fc.constantFrom<unknown>(1, null, { $gt: '' }, 'x'))
    .map(
      ([field, value]) =>
        (given: Body) =>
          withOwn(given, field, value),
    );
  return [
    withBody('unknown field', unknown),
    ...(wrong.length > 0 ? [withBody('wrong value', fc.oneof(...wrong))] : []),
    ...missing(schema).map((change) => withBody('missing field', fc.constant(change))),
    ...forbiddenCombination(deps, schema).map((change) =>
      withBody('forbidden combination', change),
    ),
    ...twoSpellings(properties, drafts),
  ];
}

/** Adds an own member, also `__proto__`, for which an assignment would set the prototype. */
function withOwn(body: Body, field: string, value: unknown): Body {
  const changed = { ...body };
  Object.defineProperty(changed, field, { value, enumerable: true, configurable: true });
  return changed;
}

function missing(schema: JsonSchema): ((body: Body) => Body)[] {
  const required = (schema.required ?? []) as string[];
  return required.map((field) => (body) => {
    const rest = Object.entries(body).filter(([name]) => name !== field);
    return Object.fromEntries(rest);
  });
}

function forbiddenCombination(
  { compile }: RequestDeps,
  schema: JsonSchema,
): fc.Arbitrary<(body: Body) => Body>[] {
  const shapesOf = createShapes({ compile, example: firstExample });
  const { ruled, forbidden } = shapesOf(schema);
  // Without a rule there is nothing to combine: a list such as that of a batch has no valid example here.
  if (ruled.length === 0 || forbidden.length === 0) return [];
  const properties = schema.properties as Record<string, JsonSchema>;
  return [
    fc.constantFrom(...forbidden).map(({ fields, fixed }) => (body: Body) => {
      const rest = Object.entries(body).filter(([field]) => !ruled.includes(field));
      const given = fields.map((field) => [field, firstExample(properties[field] ?? {})]);
      return { ...Object.fromEntries(rest), ...Object.fromEntries(given), ...fixed } as Body;
    }),
  ];
}

/** Returns a value for any field: a header name or a credential may be this, and ids are only checked for presence. */
function firstExample({ examples }: JsonSchema): unknown {
  const [example] = (examples ?? []) as unknown[];
  return example ?? 'X-Example';
}

/** Generates bodies with one key in both spellings and with different values. */
function twoSpellings(
  properties: Record<string, JsonSchema>,
  drafts: fc.Arbitrary<Draft>,
): Broken[] {
  const names = Object.keys(properties).filter((name) => snakeCase(name) !== name);
  if (names.length === 0) return [];
  return [
    fc.tuple(drafts, fc.constantFrom(...names)).map(([draft, name]) => {
      const body = { ...draft.body, [name]: 'one', [snakeCase(name)]: 'two' };
      return toWire({ ...withJsonType(draft), body }, 'two spellings');
    }),
  ];
}

/** Values that no field should accept by mistake. */
const STRANGE: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 1e308, '', ' ', 'text', '\0', '1', [], [null], {}, [[]]],
  ...[{ $gt: '' }, { $ne: null }, { $where: 'sleep(1)' }, { $regex: '.*' }, { toString: 1 }],
  ...[{ constructor: { prototype: { polluted: true } } }, ['a', 'b'], { length: 3 }],
  JSON.parse('{"__proto__": {"polluted": true}}'),
];

/** Generates values that are invalid by a schema of the document. */
function violationsOf(
  schema: JsonSchema,
  named: Record<string, JsonSchema>,
  compile: CompileSchema,
): fc.Arbitrary<unknown> {
  const check = compile(schema);
  const near = nearMisses(resolve(schema, named), named);
  return fc.constantFrom(...[...STRANGE, ...near, ...near].filter((value) => !check(value)));
}

/** Returns values just outside of what the schema allows. */
function nearMisses(schema: JsonSchema, named: Record<string, JsonSchema>): unknown[] {
  const { minimum, maximum, minLength, maxLength, maxItems, items, properties } = schema as Limits;
  const inner = items && resolve(items, named);
  return [
    ...(minimum === undefined ? [] : [minimum - 1, minimum - 0.5, String(minimum)]),
    ...(maximum === undefined ? [] : [maximum + 1, maximum * 1e9]),
    ...(minLength === undefined ? [] : ['x'.repeat(minLength - 1)]),
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1), '😀'.repeat(maxLength + 1)]),
    ...(maxItems === undefined ? [] : [Array.from({ length: maxItems + 1 }, () => 'x')]),
    ...(schema.enum
      ? (schema.enum as string[]).flatMap((each) => [each.toUpperCase(), `${each} `])
      : []),
    ...(schema.pattern ? ['é'.repeat(200), 'a\r\nb', '{}', 'x y', ':', '(', 'Ā'] : []),
    ...(schema.format ? ['2026-02-30T00:00:00Z', '2026-01-31', 'now', '1769851800'] : []),
    ...(inner ? nearMisses(inner, named).map((value) => [value]) : []),
    ...(inner ? STRANGE.map((value) => [value]) : []),
    ...Object.entries(properties ?? {}).flatMap(([field, each]) =>
      nearMisses(resolve(each, named), named).map((value) => ({ [field]: value })),
    ),
    ...((schema.anyOf ?? []) as JsonSchema[]).flatMap((each) => nearMisses(each, named)),
  ];
}

interface Limits {
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  items?: JsonSchema;
  properties?: Record<string, JsonSchema>;
}

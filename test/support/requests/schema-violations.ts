import fc from 'fast-check';
import type { CompileSchema, JsonSchema } from '../api/api-document.ts';
import { resolve } from './schema-values.ts';

/** Values that no field should accept by mistake. */
const STRANGE: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 1e308, '', ' ', 'text', '\0', '1', [], [null], {}, [[]]],
  ...[{ $gt: '' }, { $ne: null }, { $where: 'sleep(1)' }, { $regex: '.*' }, { toString: 1 }],
  ...[{ constructor: { prototype: { polluted: true } } }, ['a', 'b'], { length: 3 }],
  JSON.parse('{"__proto__": {"polluted": true}}'),
];

/** Generates values that are invalid by a schema of the document. */
export function violationsOf(
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

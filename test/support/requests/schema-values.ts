import fc from 'fast-check';
import type { CompileSchema, JsonSchema } from '../api/api-document.ts';
import { createShapes } from './body-shapes.ts';

/** Returns values for a field that its schema cannot describe well enough, such as an id; null for all others. */
export type FieldValues = (field: string) => fc.Arbitrary<unknown> | null;

export type ValueOf = (schema: JsonSchema, field?: string) => fc.Arbitrary<unknown>;

export interface SchemaDeps {
  named: Record<string, JsonSchema>;
  compile: CompileSchema;
  fieldValues: FieldValues;
}

/** Generates values that are valid by a schema of the document. */
export function createValues({ named, compile, fieldValues }: SchemaDeps): ValueOf {
  const shapesOf = createShapes({ compile, example: (schema) => sampled(valueOf(schema)) });

  function valueOf(schema: JsonSchema, field = ''): fc.Arbitrary<unknown> {
    const known = fieldValues(field);
    if (known) return known;
    if (typeof schema.$ref === 'string') {
      const check = compile(schema);
      return valueOf(resolve(schema, named)).filter((value) => check(value));
    }
    if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
    if (Array.isArray(schema.anyOf)) {
      return fc.oneof(...(schema.anyOf as JsonSchema[]).map((each) => valueOf(each)));
    }
    switch (schema.type) {
      case 'string':
        return textOf(schema);
      case 'integer': {
        const { minimum: min, maximum: max } = schema as { minimum?: number; maximum?: number };
        return fc.integer({ ...(min !== undefined && { min }), ...(max !== undefined && { max }) });
      }
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      case 'array':
        return fc.array(valueOf(schema.items as JsonSchema), { maxLength: 3 });
      case 'object':
        return schema.properties ? objectOf(schema) : ANY_OBJECT;
      default:
        throw new Error(`no values for ${JSON.stringify(schema)}`);
    }
  }

  function objectOf(schema: JsonSchema): fc.Arbitrary<unknown> {
    const { properties, required = [] } = schema as unknown as ObjectSchema;
    const model = Object.fromEntries(
      Object.entries(properties).map(([field, each]) => [field, valueOf(each, field)]),
    );
    const { ruled, shapes } = shapesOf(schema);
    const free = Object.entries(model).filter(([field]) => !ruled.includes(field));
    const requiredKeys = free.map(([field]) => field).filter((field) => required.includes(field));
    const check = compile(schema);
    return fc
      .tuple(fc.record(Object.fromEntries(free), { requiredKeys }), fc.constantFrom(...shapes))
      .chain(([rest, shape]) =>
        fc
          .record(
            Object.fromEntries(shape.fields.map((each) => [each, model[each] ?? fc.constant(0)])),
          )
          .map((chosen) => ({ ...rest, ...chosen, ...shape.fixed })),
      )
      .filter((value) => check(value));
  }

  return valueOf;
}

interface ObjectSchema {
  properties: Record<string, JsonSchema>;
  required?: string[];
}

export function resolve(schema: JsonSchema, named: Record<string, JsonSchema>): JsonSchema {
  if (typeof schema.$ref !== 'string') return schema;
  return named[schema.$ref.replace('#/components/schemas/', '')] ?? {};
}

function sampled(arbitrary: fc.Arbitrary<unknown>): unknown {
  return fc.sample(arbitrary, { numRuns: 1, seed: 1 })[0];
}

/** Generates texts, often of the greatest allowed length. Lengths count code points, as in JSON Schema. */
function textOf(schema: JsonSchema): fc.Arbitrary<string> {
  const { minLength = 0, maxLength = 100, pattern, format, not } = schema as TextSchema;
  if (format === 'date-time') return TIME;
  const plain = fc.oneof(
    { arbitrary: fc.string({ unit: 'binary', minLength, maxLength }), weight: 6 },
    { arbitrary: fc.constantFrom('a'.repeat(maxLength), '😀'.repeat(maxLength)), weight: 1 },
    { arbitrary: fc.constant('é'.repeat(Math.max(minLength, 1))), weight: 1 },
  );
  if (pattern === undefined) return plain;
  const refused = not ? new RegExp(not.pattern, 'u') : null;
  return fc
    .stringMatching(new RegExp(pattern), { maxLength })
    .filter((text) => Array.from(text).length >= minLength && !refused?.test(text));
}

interface TextSchema {
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  not?: { pattern: string };
}

const TIME = fc.oneof(
  fc
    .date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  fc.constantFrom(
    '2026-01-31T09:30:00Z',
    '2024-02-29T23:59:59.123456+14:00',
    '0000-01-01T00:00:00Z',
  ),
);

/** A JSON object of any content, with keys that mean something to careless code. */
const ANY_OBJECT = fc.oneof(
  { arbitrary: fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), weight: 8 },
  {
    arbitrary: fc.constantFrom<unknown>(
      JSON.parse(
        '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": 1}}}',
      ),
      { $where: '1', 'a.b': { $gt: '' }, toString: 1, '': '' },
    ),
    weight: 1,
  },
);

import fc from 'fast-check';
import type { CompileSchema, JsonSchema } from '../api/api-document.ts';

/** Returns values for a field that its schema cannot describe well enough, such as an id; null for all others. */
type FieldValues = (field: string) => fc.Arbitrary<unknown> | null;

export type ValueOf = (schema: JsonSchema, field?: string) => fc.Arbitrary<unknown>;

interface SchemaDeps {
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
    if (Array.isArray(schema.type)) {
      return fc.oneof(...schema.type.map((type: unknown) => valueOf({ ...schema, type })));
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
        if (isRecord(schema)) return recordOf(schema);
        return schema.properties ? objectOf(schema) : ANY_OBJECT;
      case undefined:
        return fc.jsonValue();
      default:
        throw new Error(`no values for ${JSON.stringify(schema)}`);
    }
  }

  function recordOf({ propertyNames, additionalProperties }: RecordSchema): fc.Arbitrary<unknown> {
    // The gateway refuses this key, which no schema can say.
    const keys = textOf(propertyNames).filter((key) => key !== '__proto__');
    return fc.dictionary(keys, valueOf(additionalProperties) as fc.Arbitrary<string>, {
      maxKeys: 3,
    });
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

/** Of an object of texts. */
interface RecordSchema extends JsonSchema {
  propertyNames: JsonSchema;
  additionalProperties: JsonSchema;
}

const isRecord = (schema: JsonSchema): schema is RecordSchema =>
  (schema as { additionalProperties?: JsonSchema | false }).additionalProperties !== false &&
  (schema as Partial<RecordSchema>).additionalProperties?.type !== undefined;

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
  const refused = not?.pattern === undefined ? null : new RegExp(not.pattern, 'u');
  return fc
    .stringMatching(new RegExp(pattern), { maxLength })
    .filter((text) => Array.from(text).length >= minLength && !refused?.test(text))
    .filter((text) => not?.enum?.includes(text) !== true);
}

interface TextSchema {
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  not?: { pattern?: string; enum?: string[] };
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

/** One combination of the fields that the rules of a schema name, and the values that the rules test. */
interface Shape {
  fields: string[];
  fixed: Record<string, unknown>;
}

interface Shapes {
  /** The fields that the rules of the schema name. */
  ruled: string[];
  shapes: Shape[];
  /** Combinations that the rules forbid. */
  forbidden: Shape[];
}

interface ShapeDeps {
  compile: CompileSchema;
  /** Returns one valid value. */
  example: (schema: JsonSchema) => unknown;
}

const RULES = ['oneOf', 'allOf', 'anyOf', 'not', 'if', 'then', 'else', 'dependentSchemas'];

/** All combinations of 16 fields would be 700,000. The largest that a webhook needs has six: global, with OAuth 2.0. */
const MAX_FIELDS = 6;

/**
 * Tries every combination of at most six of the fields that rules such as `oneOf` or `if` name. Random values would
 * be an allowed combination once in a hundred times.
 */
export function createShapes({ compile, example }: ShapeDeps): (schema: JsonSchema) => Shapes {
  return (schema) => {
    const properties = schema.properties as Record<string, JsonSchema>;
    const required = (schema.required ?? []) as string[];
    // Rules about lists look into their values; the combinations of fields do not depend on them.
    const ruled = [...namesIn(schema)].filter((name) => !isList(properties[name] ?? {}));
    const rest = required.filter((field) => !ruled.includes(field));
    const valueOf = (field: string): unknown => example(withoutNull(properties[field] ?? {}));
    const values = Object.fromEntries([...ruled, ...rest].map((field) => [field, valueOf(field)]));
    const check = compile(schema);
    const isAllowed = ({ fields, fixed }: Shape): boolean => {
      const given = [...fields, ...rest].map((field) => [field, values[field]]);
      return check({ ...Object.fromEntries(given), ...fixed });
    };
    const all = combinations(ruled, properties);
    return {
      ruled,
      shapes: all.filter(isAllowed),
      forbidden: all.filter((shape) => !isAllowed(shape)),
    };
  };
}

/** A schema, without the null that it may allow. */
const withoutNull = (schema: JsonSchema): JsonSchema => {
  const { type, anyOf = [] } = schema as { type?: unknown; anyOf?: JsonSchema[] };
  if (Array.isArray(type))
    return { ...schema, type: type.find((each) => each !== 'null') as unknown };
  return anyOf.find((each) => each.type !== 'null') ?? schema;
};

const isList = (schema: JsonSchema): boolean => withoutNull(schema).type === 'array';

/** Returns all combinations up to MAX_FIELDS: each field is present or not, one with an enum with each of its values. */
function combinations(ruled: readonly string[], properties: Record<string, JsonSchema>): Shape[] {
  return ruled.reduce<Shape[]>(
    (shapes, field) => {
      const values = withoutNull(properties[field] ?? {}).enum as unknown[] | undefined;
      return shapes.flatMap((shape) =>
        sizeOf(shape) === MAX_FIELDS ? [shape] : [shape, ...withField(shape, field, values)],
      );
    },
    [{ fields: [], fixed: {} }],
  );
}

const sizeOf = ({ fields, fixed }: Shape): number => fields.length + Object.keys(fixed).length;

function withField({ fields, fixed }: Shape, field: string, values?: unknown[]): Shape[] {
  if (!values) return [{ fields: [...fields, field], fixed }];
  return values.map((value) => ({ fields, fixed: { ...fixed, [field]: value } }));
}

function namesIn(schema: JsonSchema): Set<string> {
  const rules = RULES.flatMap((rule) => (rule in schema ? [schema[rule]] : []));
  const properties = Object.keys(schema.properties as object);
  const words = new Set(rules.flatMap((rule) => wordsIn(rule)));
  return new Set(properties.filter((name) => words.has(name)));
}

/** Returns every key and every text of a rule; those that are names of fields are the fields it names. */
function wordsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, member]) => [key, ...wordsIn(member)]);
}

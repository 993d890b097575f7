import { describe, expect, test } from '@jest/globals';
import { problemsOfSchema } from '@posthorn/domain/catalogue/event-schema.ts';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { type CheckResult, compileSchema } from './check-payload.ts';

const check = (schema: object, payload: unknown): CheckResult =>
  compileSchema(JSON.stringify(schema))(
    typeof payload === 'string' ? payload : JSON.stringify(payload),
  );

const problemsOf = (schema: object, payload: unknown): [string, string][] => {
  const result = check(schema, payload);
  if ('fault' in result) throw new Error(result.fault);
  return result.problems.map(({ path, message }) => [path, message]);
};

const pathsOf = (schema: object, payload: unknown): string[] =>
  problemsOf(schema, payload).map(([path]) => path);

describe('a payload', () => {
  test('has the path of each problem, also of what is missing or too much', () => {
    const item = {
      type: 'object',
      required: ['sku', 'count'],
      properties: { sku: { type: 'string' }, count: { type: 'integer', minimum: 1 } },
      additionalProperties: false,
    };
    const schema = {
      properties: { items: { items: { $ref: '#/$defs/Item' } } },
      $defs: { Item: item },
    };
    const payload = {
      items: [
        { sku: 'A', count: 1 },
        { sku: 7, more: 1 },
        { sku: 'B', count: 0 },
      ],
    };
    expect(problemsOf(schema, payload)).toEqual([
      ['payload.items.1.count', 'is required'],
      ['payload.items.1.sku', 'Instance type "number" is invalid. Expected "string".'],
      ['payload.items.1.more', 'is not allowed'],
      ['payload.items.2.count', '0 is less than 1.'],
    ]);
  });

  test('that meets none of several schemas has one problem, and not those of each', () => {
    const either = { anyOf: [{ type: 'string' }, { type: 'object', required: ['id'] }] };
    expect(pathsOf({ properties: { a: either, b: either } }, { a: 1, b: { id: 1 } })).toEqual([
      'payload.a',
    ]);
    expect(pathsOf({ oneOf: [{ required: ['a'] }, { required: ['b'] }] }, {})).toEqual(['payload']);
    const list = { properties: { list: { contains: { type: 'string' }, maxContains: 1 } } };
    expect(pathsOf(list, { list: [1, {}] })).toEqual(['payload.list']);
    expect(pathsOf(list, { list: ['a', 'b'] })).toEqual(['payload.list']);
    expect(pathsOf(list, { list: [1, 'b'] })).toEqual([]);
  });

  test('has at most 20 problems, and one of a long list only', () => {
    const schema = { properties: { list: { items: { type: 'string' } } } };
    expect(pathsOf(schema, { list: Array(100).fill(1) })).toHaveLength(20);
    expect(pathsOf(schema, { list: Array(60_000).fill(1) })).toEqual(['payload.list.0']);
  });

  test('has the properties that are written in it, and no others [security]', () => {
    const names = ['constructor', 'toString', '__proto__', 'hasOwnProperty'];
    const schema = {
      required: names,
      properties: JSON.parse(
        '{"__proto__": {"type": "string"}, "toString": {"type": "string"}}',
      ) as object,
    };
    expect(pathsOf(schema, '{}')).toEqual(names.map((name) => `payload.${name}`));
    const all = '{"constructor": 1, "toString": "s", "hasOwnProperty": 1, "__proto__": 1}';
    expect(pathsOf(schema, all)).toEqual(['payload.__proto__']);
    const dependent = {
      dependentRequired: { valueOf: ['a'], id: ['b'], $id: ['c'], items: ['d'] },
    };
    expect(pathsOf(dependent, '{}')).toEqual([]);
    expect(pathsOf(dependent, '{"id": 1, "$id": "http://["}')).toEqual(['payload.b', 'payload.c']);
    expect(pathsOf({ const: {} }, '{"__proto__": {}}')).toEqual(['payload']);
  });

  test('with a number beyond a double is the largest of all', () => {
    expect(pathsOf({ properties: { a: { maximum: 1e308 } } }, '{"a": 1e400}')).toEqual([
      'payload.a',
    ]);
    expect(pathsOf({ properties: { a: { type: 'number' } } }, '{"a": 1e400}')).toEqual([]);
  });

  test('has its keys in the path as they are written', () => {
    const schema = { additionalProperties: { type: 'string' } };
    for (const key of ['a/b', 'a~b', 'a b', 'ü%20', '']) {
      expect(pathsOf(schema, { [key]: 1 })).toEqual([`payload.${key}`]);
    }
  });

  test('cannot be checked by a schema that refers to itself without end', () => {
    const result = check({ $ref: '#' }, {});
    expect(result).toEqual({ fault: expect.any(String) });
    const byTurns = {
      $ref: '#/$defs/a',
      $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } },
    };
    expect(check(byTurns, {})).toHaveProperty('fault');
    expect(
      pathsOf({ properties: { child: { $ref: '#' } }, type: 'object' }, '{"child": {"child": 1}}'),
    ).toEqual(['payload.child.child']);
  });

  test('with notes that look like schemas is checked by the others only', () => {
    const schema = {
      properties: {
        a: {
          type: 'number',
          default: { $id: 'https://[', $ref: '#/nowhere' },
          example: { id: '//[' },
        },
      },
      'x-note': { $anchor: 'a', properties: { a: false } },
    };
    expect(problemsOfSchema(schema)).toEqual([]);
    expect(pathsOf(schema, { a: 1 })).toEqual([]);
  });
});

/* Ajv, which generates code, is the oracle. */

const NAMES = fc.constantFrom('a', 'b', 'c', 'id', 'constructor', 'x y', '~/');
const VALUE: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, false, 0, 1, 2, 2.5, -3, 7, '', 'a', 'ab', 'abc', 'äb'),
    fc.array(tie('value'), { maxLength: 4 }),
    // For the interpreter, an empty object equals an empty list.
    fc.dictionary(NAMES, tie('value'), { minKeys: 1, maxKeys: 4 }),
  ),
})).value;

const COUNT = fc.integer({ min: 0, max: 3 });
const NUMBER = fc.constantFrom(-1, 0, 1, 2, 2.5, 7);
const TYPE = fc.constantFrom('array', 'boolean', 'integer', 'null', 'number', 'object', 'string');
const NAME_LIST = fc.uniqueArray(NAMES, { maxLength: 3 });

const SCHEMA: fc.Arbitrary<object> = fc
  .letrec<{ schema: object | boolean }>((tie) => {
    const one = tie('schema');
    const list = fc.array(one, { minLength: 1, maxLength: 3 });
    const byName = fc.dictionary(NAMES, one, { maxKeys: 3 });
    const parts: Record<string, fc.Arbitrary<unknown>> = {
      type: fc.oneof(TYPE, fc.uniqueArray(TYPE, { minLength: 1, maxLength: 3 })),
      const: VALUE,
      enum: fc.array(VALUE, { minLength: 1, maxLength: 3 }),
      minimum: NUMBER,
      maximum: NUMBER,
      exclusiveMinimum: NUMBER,
      exclusiveMaximum: NUMBER,
      multipleOf: fc.constantFrom(1, 2, 0.5),
      minLength: COUNT,
      maxLength: COUNT,
      minItems: COUNT,
      maxItems: COUNT,
      minProperties: COUNT,
      maxProperties: COUNT,
      uniqueItems: fc.boolean(),
      pattern: fc.constantFrom('^a', 'b$', '^.{2}$', '[äb]'),
      required: NAME_LIST,
      dependentRequired: fc.dictionary(NAMES, NAME_LIST, { maxKeys: 2 }),
      dependentSchemas: byName,
      properties: byName,
      patternProperties: fc.dictionary(fc.constantFrom('^a', 'o', '~'), one, { maxKeys: 2 }),
      additionalProperties: one,
      propertyNames: one,
      items: one,
      prefixItems: list,
      contains: one,
      minContains: COUNT,
      maxContains: COUNT,
      allOf: list,
      anyOf: list,
      oneOf: list,
      not: one,
      if: one,
      then: one,
      else: one,
      $ref: fc.constantFrom('#/$defs/one', '#/$defs/a~1%20b'),
    };
    const someOf = fc
      .uniqueArray(fc.constantFrom(...Object.keys(parts)), { minLength: 1, maxLength: 4 })
      .chain((names) =>
        fc.record(Object.fromEntries(names.map((name) => [name, parts[name] ?? fc.constant(1)]))),
      );
    return {
      schema: fc.oneof(
        { maxDepth: 3 },
        { arbitrary: fc.boolean(), weight: 1 },
        { arbitrary: someOf, weight: 6 },
      ),
    };
  })
  .schema.filter((each): each is object => typeof each === 'object');

/** Generated objects have no prototype, by which Ajv tells equal ones apart. */
const plain = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;

/**
 * Ajv 8.20 lets an empty list pass `contains` beside `prefixItems` that nothing meets, and beside `items` when the list before it
 * in the same object has passed; by JSON Schema 2020-12 (10.3.1.3) it fails.
 */
const isWrongInAjv = (schema: string): boolean =>
  schema.includes('"contains"') && /"(?:prefixItems|items)"/.test(schema);

/**
 * Returns null where Ajv 8.20 has no answer: beside `anyOf` with `patternProperties` and a `not` that nothing meets, the code
 * that it makes reads a variable that it does not declare.
 */
function askAjv(validate: (value: unknown) => unknown, value: unknown): unknown {
  try {
    return validate(value);
  } catch (error) {
    if ((error as Error).name === 'ReferenceError') return null;
    throw error;
  }
}

describe('generated schemas', () => {
  const defs = { $defs: { one: { type: ['object', 'number'] }, 'a/ b': { maxProperties: 2 } } };

  test('are accepted, and let pass what they let pass in Ajv', () => {
    const ajv = new Ajv2020({ strict: false, addUsedSchema: false, ownProperties: true });
    fc.assert(
      fc.property(SCHEMA, fc.array(VALUE, { minLength: 1, maxLength: 5 }), (generated, values) => {
        const schema = plain({ ...generated, ...defs });
        expect(problemsOfSchema(schema)).toEqual([]);
        if (isWrongInAjv(JSON.stringify(schema))) return;
        const validate = ajv.compile(schema);
        const checked = compileSchema(JSON.stringify(schema));
        for (const value of values.map(plain)) {
          const result = checked(JSON.stringify(value));
          const isValid = 'problems' in result && result.problems.length === 0;
          const expected = askAjv(validate, value);
          if (expected !== null) expect([value, isValid]).toEqual([value, expected]);
        }
      }),
      { numRuns: 400 },
    );
  });

  test('with a value of another kind are refused where the meta-schema refuses them', () => {
    const ajv = new Ajv2020({ strict: false, addUsedSchema: false, ownProperties: true });
    fc.assert(
      fc.property(SCHEMA, fc.constantFrom(...NAMED), VALUE, (generated, keyword, value) => {
        const schema = { ...generated, [keyword]: value, ...defs };
        if (problemsOfSchema(schema).length > 0) return;
        expect([keyword, value, ajv.validateSchema(schema)]).toEqual([keyword, value, true]);
      }),
      { numRuns: 400 },
    );
  });
});

// prettier-ignore
const NAMED = [
  'type', 'enum', 'minimum', 'multipleOf', 'minLength', 'maxContains', 'uniqueItems', 'pattern', 'required', 'items',
  'dependentRequired', 'dependentSchemas', 'properties', 'patternProperties', 'prefixItems', 'allOf', 'not', 'format',
] as const;

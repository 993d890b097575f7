import { describe, expect, test } from '@jest/globals';
import type { Json } from '../filter.ts';
import { checkedPartOf, problemsOfSchema } from './event-schema.ts';

const pathsOf = (schema: unknown): string[] =>
  problemsOfSchema(schema).map(({ path }) => path.join('.'));

/** `{"items": {"items": …}}` with so many objects in each other. */
const nested = (levels: number): object => (levels === 1 ? {} : { items: nested(levels - 1) });

describe('the schema of an event type', () => {
  test('has keywords by which payloads are checked, notes, and references within itself', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/order',
      title: 'Order',
      'x-owner': { team: ['orders'] },
      type: 'object',
      required: ['id'],
      properties: {
        id: { type: ['string', 'integer'], examples: [17], default: { $ref: 'elsewhere' } },
        address: { $ref: '#/$defs/Postal~1Address' },
        same: { $ref: '#/$defs/Postal%7E1Address' },
        parent: { $ref: '#' },
        default: { enum: [null] },
      },
      patternProperties: { '^x-\\p{L}+$': true },
      additionalProperties: false,
      $defs: { 'Postal/Address': { properties: { zip: { pattern: '^\\d+$', format: 'date' } } } },
    };
    expect(problemsOfSchema(schema)).toEqual([]);
  });

  test.each([
    [[], ''],
    ['object', ''],
    [{ properties: { a: { nullable: true } } }, 'properties.a.nullable'],
    [{ unevaluatedProperties: false }, 'unevaluatedProperties'],
    [{ $dynamicRef: '#x' }, '$dynamicRef'],
    [{ properties: { a: { $id: 'b' } } }, 'properties.a.$id'],
    [{ $schema: 'http://json-schema.org/draft-07/schema#' }, '$schema'],
    [{ format: 'int64' }, 'format'],
    [{ type: 'text' }, 'type'],
    [{ type: [] }, 'type'],
    [{ type: ['string', 'string'] }, 'type'],
    [{ enum: [] }, 'enum'],
    [{ items: [{}] }, 'items'],
    [{ items: 1 }, 'items'],
    [{ allOf: [] }, 'allOf'],
    [{ allOf: [true, 1] }, 'allOf.1'],
    [{ properties: [] }, 'properties'],
    [{ required: ['a', 'a'] }, 'required'],
    [{ dependentRequired: { a: [1] } }, 'dependentRequired'],
    [{ minLength: -1 }, 'minLength'],
    [{ maxItems: 1.5 }, 'maxItems'],
    [{ multipleOf: 0 }, 'multipleOf'],
    [{ maximum: Infinity }, 'maximum'],
    [{ pattern: '(' }, 'pattern'],
    [{ pattern: '\\Z' }, 'pattern'],
    [{ patternProperties: { '[': {} } }, 'patternProperties'],
    [{ $ref: 'https://example.com/schema' }, '$ref'],
    [{ $ref: '#/$defs/a' }, '$ref'],
    [{ $ref: '#/default', default: {} }, '$ref'],
    [{ $ref: '#/%' }, '$ref'],
    [JSON.parse('{"properties": {"__proto__": {"typ": 1}}}'), 'properties.__proto__.typ'],
    [JSON.parse('{"__proto__": {}}'), '__proto__'],
  ])('%j is refused at %j', (schema, path) => {
    expect(pathsOf(schema)).toEqual([path]);
  });

  test('has at most 32 levels, 2,000 objects and lists, and 32,768 bytes', () => {
    expect(pathsOf(nested(32))).toEqual([]);
    expect(pathsOf(nested(33))).toEqual([Array(32).fill('items').join('.')]);
    const many = (count: number): object => ({ allOf: Array.from({ length: count }, () => ({})) });
    expect([pathsOf(many(1_998)), pathsOf(many(1_999))]).toEqual([[], ['']]);
    const long = (chars: number): object => ({ title: 'x'.repeat(chars) });
    expect([pathsOf(long(32_756)), pathsOf(long(32_757))]).toEqual([[], ['']]);
  });

  test('is refused with 20 problems at most', () => {
    const wrong = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`k${n}`, 1]));
    expect(problemsOfSchema(wrong)).toHaveLength(20);
  });
});

describe('the part by which payloads are checked', () => {
  test('has no notes, and each reference as encodeURI writes its pointer', () => {
    const schema = {
      title: 'Order',
      properties: {
        title: { type: 'string', default: { $id: 'no schema' } },
        'a b': { $ref: '#/$defs/ü%20%5E~1x' },
      },
      const: { title: 'kept' },
      $defs: { 'ü ^/x': { allOf: [{ description: 'one', minimum: 1 }, true] } },
    };
    expect(checkedPartOf(schema as Json)).toEqual({
      properties: { title: { type: 'string' }, 'a b': { $ref: '#/$defs/%C3%BC%20%5E~1x' } },
      const: { title: 'kept' },
      $defs: { 'ü ^/x': { allOf: [{ minimum: 1 }, true] } },
    });
  });
});

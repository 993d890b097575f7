import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Facts, type Filter, failureOf, type Json, matches } from './filter.ts';
import vectors from './filter.vectors.json' with { type: 'json' };
import { filterOf, filterText, parseFilter } from './parse-filter.ts';

interface Vector {
  rule: string;
  filter: object;
  message: Partial<Facts> & Pick<Facts, 'payload'>;
  matches: boolean;
}

const VECTORS = vectors as Vector[];

function parsed(given: unknown): Filter {
  const result = parseFilter(given);
  if ('problem' in result) throw new Error(JSON.stringify(result.problem));
  return result.filter;
}

const factsOf = (message: Vector['message']): Facts => ({ tags: [], ...message });
const about = (payload: Json): Facts => factsOf({ payload });

describe('a filter', () => {
  test.each(VECTORS)('$rule: $filter of $message is $matches', ({ filter, message, ...vector }) => {
    const verdict = matches(parsed(filter), factsOf(message));
    expect(verdict).toMatchObject({ matches: vector.matches, isUndecided: false });
    const inverted = matches(parsed({ $not: filter }), factsOf(message));
    expect(inverted).toMatchObject({ matches: !vector.matches, isUndecided: false });
    expect(failureOf(parsed(filter), factsOf(message)) === null).toBe(vector.matches);
  });

  test('decides every message without an error', () => {
    const key = fc.constantFrom('a', 'b', '$eq', '$in', '$or', '$and', '$not', '$gt', '$exist');
    const { json } = fc.letrec<{ json: Json }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom<Json>(null, true, false, 0, 1, 'a', 'ab'),
        fc.array(tie('json'), { maxLength: 3 }),
        fc.dictionary(key, tie('json'), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(json, json, (condition, payload) => {
        const result = parseFilter({ payload: condition });
        if ('problem' in result) return;
        const verdict = matches(result.filter, about(payload));
        expect(matches(filterOf(JSON.stringify(result.filter)), about(payload))).toEqual(verdict);
        expect(failureOf(result.filter, about(payload)) === null).toBe(verdict.matches);
      }),
    );
  });

  test.each([
    [{ amount: { $gte: 100 } }, { amount: 99 }, 'payload.amount.$gte'],
    [{ amount: 1, buyer: { country: 'AT' } }, { amount: 1, buyer: {} }, 'payload.buyer.country'],
    [{ items: { sku: 'A', n: 1 } }, { items: [{ sku: 'A' }] }, 'payload.items'],
    [{ $and: [{ a: 1 }, { b: { $gt: 1, $lt: 5 } }] }, { a: 1, b: 5 }, 'payload.$and.1.b.$lt'],
    [{ $or: [{ a: 1 }, { a: 2 }] }, { a: 3 }, 'payload.$or'],
    [{ a: { $not: { $in: 'x' } } }, { a: 'xy' }, 'payload.a.$not'],
  ])('names the first condition that failed: %j of %j at %s', (condition, payload, path) => {
    expect(failureOf(parsed({ payload: condition }), about(payload))).toBe(path);
  });
});

describe('a filter that needs more than 10,000 steps is undecided and counts as matching', () => {
  const list = Array.from({ length: 50_000 }, (_, n) => n);
  const nested = Array.from({ length: 300 }, () => [Array.from({ length: 300 }, (_, n) => n)]);
  const conditions = Array.from({ length: 50 }, (_, n) => -1 - n);

  test.each<[string, Json, Json]>([
    ['an entry in a list of 50,000', { list: -1 }, { list }],
    ['50 entries in a list of 50,000', { list: conditions }, { list }],
    ['a text in a list of 50,000', { list: { $in: 'x' } }, { list }],
    ['keys in a list of 50,000', { list: { sku: 'x' } }, { list }],
    ['a list of lists', { list: { $not: { $not: -1 } } }, { list: nested }],
    [
      'a long text in a long text',
      { text: { $in: 'ab'.repeat(1_000) } },
      { text: 'a'.repeat(2 ** 18) },
    ],
  ])('%s', (_, condition, payload) => {
    const verdict = matches(parsed({ payload: condition }), about(payload));
    expect(verdict).toMatchObject({ matches: true, isUndecided: true });
    // The step that is too many, and those of the calls around it.
    expect(verdict.steps).toBeLessThan(200_000);
    expect(failureOf(parsed({ payload: condition }), about(payload))).toBeNull();
  });

  test('a short text in a long one is decided', () => {
    const text = 'a'.repeat(2 ** 18);
    expect(
      matches(parsed({ payload: { text: { $in: 'order 17' } } }), about({ text })),
    ).toMatchObject({
      matches: false,
      isUndecided: false,
    });
  });
});

describe('a filter is refused', () => {
  const deep = (levels: number): Json => (levels === 0 ? 1 : { a: deep(levels - 1) });
  const listOf = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
  const keysOf = (count: number): Json =>
    Object.fromEntries(listOf(count).map((n) => [`k${n}`, n]));

  test.each<[string, unknown, string, string]>([
    ['no object', [], '', 'must be an object'],
    ['null', null, '', 'must be an object'],
    ['an unknown part', { headers: {} }, 'headers', 'must be payload, eventType, tags'],
    ['__proto__', JSON.parse('{"__proto__":{}}'), '__proto__', 'must be payload'],
    ['an unknown part in $or', { $or: [{ a: 1 }] }, '$or.0.a', 'must be payload'],
    ['an operator on the message', { $eq: 1 }, '$eq', 'must be payload'],
    ['an unknown operator', { payload: { a: { $foo: 1 } } }, 'payload.a.$foo', 'is no operator'],
    ['$regex', { payload: { a: { $regex: 'a' } } }, 'payload.a.$regex', 'is no operator'],
    ['$ref', { payload: { a: { $ref: 'b' } } }, 'payload.a.$ref', 'is no operator'],
    ['order of a list', { payload: { a: { $gt: [1] } } }, 'payload.a.$gt', 'a number or text'],
    ['$in of a number', { payload: { a: { $in: 1 } } }, 'payload.a.$in', 'must be text, or a list'],
    [
      '$in of objects',
      { payload: { a: { $in: [{}] } } },
      'payload.a.$in',
      'must be text, or a list',
    ],
    [
      '$startsWith of numbers',
      { payload: { $startsWith: [1] } },
      'payload.$startsWith',
      'list of text',
    ],
    ['$exist of a text', { payload: { a: { $exist: 'no' } } }, 'payload.a.$exist', 'true or false'],
    ['$or of an object', { payload: { $or: {} } }, 'payload.$or', 'must be a list of conditions'],
    ['$and of nothing', { $and: [] }, '$and', 'must be a list of conditions'],
    ['$not of a text', { $not: 'a' }, '$not', 'must be an object'],
    ['an infinite number', { payload: { a: Infinity } }, 'payload.a', 'is too large'],
    ['11 levels', { payload: deep(10) }, 'payload.a.a.a.a.a.a.a.a.a', 'is below 10 levels'],
    ['101 entries', { payload: { a: { $in: listOf(101) } } }, 'payload.a.$in', '100 entries'],
    ['51 conditions', { payload: keysOf(51) }, '', 'at most 50 conditions'],
    ['51 conditions below $or', { $or: [{ payload: keysOf(50) }] }, '', 'at most 50 conditions'],
    ['4,097 bytes', { payload: 'é'.repeat(2_042) }, '', 'at most 4096 bytes'],
  ])('with %s', (_, given, path, message) => {
    const result = parseFilter(given);
    const problem = 'problem' in result ? result.problem : null;
    expect([problem?.path.join('.'), problem?.message]).toEqual([
      path,
      expect.stringContaining(message),
    ]);
  });

  test.each<[string, unknown]>([
    ['10 levels', { payload: deep(9) }],
    ['100 entries', { payload: { a: { $in: listOf(100) } } }],
    ['50 conditions', { payload: keysOf(50) }],
    ['a list, which is one condition', { payload: { a: listOf(100) } }],
    ['4,096 bytes', { payload: 'é'.repeat(2_041) }],
  ])('not with %s', (_, given) => {
    expect(parseFilter(given)).toHaveProperty('filter');
  });
});

test('the filter of a request is stored as its text, and its problem has its path', () => {
  const filter = { payload: { amount: { $gte: 100 } } };
  expect(filterOf(filterText.parse(filter))).toEqual(filter);
  const issue = filterText.safeParse({ payload: { a: { $foo: 1 } } }).error?.issues;
  expect(issue).toMatchObject([{ path: ['payload', 'a', '$foo'], message: 'is no operator' }]);
});

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Json, JsonObject } from '../filter.ts';
import products from './openapi.products.json' with { type: 'json' };
import type { ImportProblem } from './parts.ts';
import { type ImportedEventType, readOpenApi } from './read-openapi.ts';
import { writeOpenApi, writeWebhook } from './write-openapi.ts';

/** With its JSON as objects. */
type Described = Omit<ImportedEventType, 'archived' | 'schema' | 'example'> &
  Record<'schema' | 'example', JsonObject | null>;

interface Product {
  product: string;
  document: JsonObject;
  eventTypes: readonly Described[];
}

const PRODUCTS = products as unknown as Product[];

const textOf = (json: JsonObject | null): string | null => json && JSON.stringify(json);

const stored = ({ schema, example, ...others }: Described): ImportedEventType => ({
  ...others,
  schema: textOf(schema),
  example: textOf(example),
  archived: false,
});

/** Goes through JSON, as documents do. */
function read(document: object): { eventTypes: ImportedEventType[]; problems: ImportProblem[] } {
  const given = JSON.parse(JSON.stringify(document)) as JsonObject;
  const result = readOpenApi(given);
  if ('problem' in result) return { eventTypes: [], problems: [result.problem] };
  const all = [...result.eventTypes];
  return {
    eventTypes: all.flatMap(({ eventType }) => eventType ?? []),
    problems: all.flatMap(({ problems }) => problems),
  };
}

function write(eventTypes: readonly ImportedEventType[]): JsonObject {
  const webhooks = eventTypes.map((each): [string, Json] => [each.name, writeWebhook(each)]);
  return writeOpenApi('Orders', Object.fromEntries(webhooks));
}

const withSchema = (schema: unknown, others: object = {}) => ({
  openapi: '3.1.0',
  webhooks: { paid: { post: { requestBody: { content: { 'application/json': { schema } } } } } },
  ...others,
});

const SCHEMA_PATH = 'webhooks.paid.post.requestBody.content.application/json.schema';

const problemsOf = (document: object) =>
  read(document).problems.map(({ path, message }) => `${path.join('.')} ${message}`);

describe('a document is read', () => {
  test.each(PRODUCTS)('of $product', ({ document, eventTypes }) => {
    const { eventTypes: found, problems } = read(document);
    expect(problems).toEqual([]);
    const parsed = (text: string | null): unknown => text && JSON.parse(text);
    const shown = found.map(({ archived: _archived, schema, example, ...others }) => {
      return { ...others, schema: parsed(schema), example: parsed(example) };
    });
    expect(shown).toEqual(eventTypes);
  });

  test.each(PRODUCTS)('and exported of $product without a difference', ({ eventTypes }) => {
    const all = eventTypes.map(stored);
    expect(read(write(all))).toEqual({ eventTypes: all, problems: [] });
  });
});

test('an operation with x-archived is an event type that is archived', () => {
  const webhooks = (archived: unknown) => ({
    openapi: '3.1.0',
    webhooks: { a: { post: { 'x-archived': archived } } },
  });
  expect(read(webhooks(true)).eventTypes).toMatchObject([{ name: 'a', archived: true }]);
  expect(problemsOf(webhooks('yes'))).toEqual(['webhooks.a.post.x-archived must be true or false']);
});

/** Schemas with references to themselves, and with what only looks like a reference. */
function schemas(): fc.Arbitrary<JsonObject> {
  const name = fc.constantFrom('id', '$ref', 'a/b', 'a b', '~', 'ü', 'items', '7');
  const reference = fc.constantFrom(
    '#',
    '#/$defs/id',
    '#/$defs/a~1b',
    '#/$defs/a%20b',
    '#/$defs/%C3%BC',
  );
  const { schema } = fc.letrec<{ schema: Json }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3 },
      fc.boolean(),
      fc.record({ $ref: reference, title: fc.string({ unit: 'grapheme' }) }),
      fc.record({ const: fc.constant({ $ref: '#/components/schemas/none' }) }),
      fc.record({ 'x-note': fc.constant({ $ref: '#/x' }), format: fc.constant('date') }),
      fc.record({ properties: fc.dictionary(name, tie('schema'), { maxKeys: 3 }) }),
      fc.record({ items: tie('schema'), uniqueItems: fc.boolean() }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    ),
  }));
  const $defs = fc.constant({ id: {}, 'a/b': {}, 'a b': {}, ü: { type: 'string' } });
  return fc.record({ allOf: fc.tuple(schema), $defs });
}

test('importing an export changes nothing', () => {
  const eventType: fc.Arbitrary<ImportedEventType> = fc.record({
    name: fc.stringMatching(/^[A-Za-z0-9_:/-][A-Za-z0-9._:/-]{0,20}$/),
    description: fc.string({ unit: 'grapheme' }),
    group: fc.option(fc.string({ minLength: 1 })),
    schema: fc.option(schemas().map(textOf)),
    example: fc.option(
      fc
        .dictionary(fc.constantFrom('a', '1', 'b'), fc.jsonValue())
        .map((each) => textOf(each as JsonObject)),
    ),
    deprecated: fc.boolean(),
    archived: fc.constant(false),
  });
  const catalogue = fc.uniqueArray(eventType, { selector: ({ name }) => name, maxLength: 5 });
  fc.assert(
    fc.property(catalogue, (given) => {
      const { eventTypes, problems } = read(write(given));
      const byName = (all: readonly ImportedEventType[]) =>
        new Map(all.map((each) => [each.name, each]));
      expect(problems).toEqual([]);
      expect(byName(eventTypes)).toEqual(byName(given));
    }),
  );
});

describe('a document is refused', () => {
  const webhook = (item: object) => ({ openapi: '3.1.0', webhooks: { paid: item } });
  const many = Array.from({ length: 2_001 }, (_, n) => [`n${n}`, { post: {} }]);
  const chain = Array.from({ length: 12 }, (_, n) => [
    `n${n}`,
    { $ref: `#/components/pathItems/n${n + 1}` },
  ]);

  test.each<[string, object, string]>([
    ['of another version', { openapi: '2.0', webhooks: {} }, 'openapi must be 3.1 or 3.0'],
    ['without a version', { webhooks: {} }, 'openapi must be 3.1'],
    ['without webhooks', { openapi: '3.1.0', paths: {} }, 'webhooks must be an object'],
    ['with a list of webhooks', { openapi: '3.1.0', webhooks: [] }, 'webhooks must be an object'],
    [
      'with 2,001 webhooks',
      { openapi: '3.1.0', webhooks: Object.fromEntries(many) as object },
      'webhooks must have at most 2000 entries',
    ],
    ['without an operation', webhook({}), 'webhooks.paid must have an operation'],
    ['with a text in place of a webhook', webhook('x' as never), 'webhooks.paid must have an'],
    ['with two operations', webhook({ get: {}, put: {} }), 'webhooks.paid must have post, or one'],
    [
      'with a reference to another file',
      webhook({ $ref: 'other.yaml#/x' }),
      'webhooks.paid.$ref must begin with #/: bundle',
    ],
    [
      'with a reference to nothing',
      webhook({ $ref: '#/components/pathItems/none' }),
      'webhooks.paid.$ref leads to nothing',
    ],
    [
      'with a reference to a member of all objects',
      webhook({ $ref: '#/constructor' }),
      'webhooks.paid.$ref leads to nothing',
    ],
    [
      'with references in a row',
      {
        ...webhook({ $ref: '#/components/pathItems/n0' }),
        components: { pathItems: Object.fromEntries(chain) as object },
      },
      'webhooks.paid leads through more than 10 references',
    ],
    [
      'with references in a circle',
      webhook({ $ref: '#/webhooks/paid' }),
      'webhooks.paid leads through more than 10 references',
    ],
  ])('%s', (_, document, problem) => {
    expect(problemsOf(document)).toContainEqual(expect.stringContaining(problem));
  });

  test.each<[string, unknown, object, string]>([
    [
      'a missing component',
      { $ref: '#/components/schemas/X' },
      {},
      'components.schemas.X is missing',
    ],
    [
      'an address',
      { not: { $ref: 'https://example.com/x.json' } },
      {},
      `${SCHEMA_PATH}.not.$ref must lead into this schema`,
    ],
    [
      'another part of the document',
      { items: { $ref: '#/paths/x' } },
      {},
      `${SCHEMA_PATH}.items.$ref must lead into this schema`,
    ],
    ['the whole document', { $ref: '#' }, {}, `${SCHEMA_PATH}.$ref must lead into this schema`],
    [
      'a definition and a component of one name',
      { $ref: '#/components/schemas/X', $defs: { X: {} } },
      { components: { schemas: { X: {} } } },
      `${SCHEMA_PATH}.$defs.X has the name of a component`,
    ],
    [
      'components of more than 32 KiB',
      { anyOf: [{ $ref: '#/components/schemas/X' }, { $ref: '#/components/schemas/Y' }] },
      {
        components: {
          schemas: { X: { title: 'x'.repeat(20_000) }, Y: { title: 'y'.repeat(20_000) } },
        },
      },
      `${SCHEMA_PATH} has more than 32768 bytes`,
    ],
    ['a schema of more than 32 KiB', { title: 'x'.repeat(32_768) }, {}, `${SCHEMA_PATH} has more`],
  ])('with a schema that refers to %s', (_, schema, others, problem) => {
    expect(problemsOf(withSchema(schema, others))).toEqual([expect.stringContaining(problem)]);
  });

  test.each<[string, object, string]>([
    ['name', { größe: { post: {} } }, 'webhooks.größe must be 1 to 128 letters'],
    ['description', { paid: { post: { summary: 7 } } }, 'webhooks.paid.post.summary must be text'],
    ['group', { paid: { post: { tags: [''] } } }, 'webhooks.paid.post.tags.0 must have 1 to 100'],
    [
      'flag',
      { paid: { post: { deprecated: 'no' } } },
      'webhooks.paid.post.deprecated must be true',
    ],
    [
      'keyword of the schema',
      withSchema({ $ref: '#/components/schemas/X' }).webhooks,
      `${SCHEMA_PATH}.$defs.X.unevaluatedItems is not checked here`,
    ],
  ])('with a wrong %s', (_, webhooks, problem) => {
    const components = { schemas: { X: { unevaluatedItems: false } } };
    const problems = problemsOf({ openapi: '3.1.0', webhooks, components });
    expect(problems).toEqual([expect.stringContaining(problem)]);
  });

  test('with all its problems', () => {
    const properties = { a: { $ref: 'x' }, b: { $ref: 'y' } };
    const document = withSchema({ properties });
    const webhooks = { ...document.webhooks, 'order.sent': {} };
    expect(problemsOf({ ...document, webhooks })).toHaveLength(3);
  });
});

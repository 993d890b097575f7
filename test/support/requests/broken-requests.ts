import fc from 'fast-check';
import type { JsonSchema, Operation } from '../api/api-document.ts';
import { brokenBodies } from './broken-bodies.ts';
import { brokenBytes } from './broken-bytes.ts';
import { ODD_IDS } from './known-ids.ts';
import { isRequired, type Draft, type RequestDeps } from './valid-requests.ts';
import { snakeCase, toWire, type Broken, type WireRequest } from './wire-request.ts';

/** Generates requests that the document forbids, each by one change of an allowed one. */
export function brokenRequests(
  deps: RequestDeps,
  operation: Operation,
  drafts: fc.Arbitrary<Draft>,
): Broken {
  const kinds: [number, Broken[]][] = [
    [1, brokenHeaders(deps, operation, drafts)],
    [1, brokenQueries(operation, drafts)],
    [1, brokenPaths(operation, drafts)],
    // Most rules concern fields.
    [5, operation.body ? brokenBodies(deps, operation, drafts) : []],
    [2, operation.body ? brokenBytes(operation, drafts) : []],
  ];
  return fc.oneof(
    ...kinds
      .filter(([, broken]) => broken.length > 0)
      .map(([weight, broken]) => ({ arbitrary: fc.oneof(...broken), weight })),
  );
}

const UNKNOWN_PARAMETERS = [
  ...['limits', '__proto__', 'constructor', '$where', 'limit[$gt]', 'hasOwnProperty', 'a.b', 'é'],
];

function changed(
  what: string,
  drafts: fc.Arbitrary<Draft>,
  change: (draft: Draft) => Partial<Draft>,
): Broken {
  return drafts.map((draft) => toWire({ ...draft, ...change(draft) }, what));
}

function withHeader(
  what: string,
  drafts: fc.Arbitrary<Draft>,
  name: string,
  values: readonly string[],
): Broken {
  return fc
    .tuple(drafts, fc.constantFrom(...values))
    .map(([draft, value]) =>
      toWire({ ...draft, headers: { ...draft.headers, [name]: value } }, what),
    );
}

function brokenHeaders(
  { apiKey, ids }: RequestDeps,
  operation: Operation,
  drafts: fc.Arbitrary<Draft>,
): Broken[] {
  const without = (what: string, name: string): Broken =>
    changed(what, drafts, ({ headers }) => ({
      headers: Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name)),
    }));
  const wrongKeys = [
    '',
    'phk_',
    apiKey.slice(1),
    `${apiKey}A`,
    `Bearer ${apiKey}`,
    'é',
    '{"$ne":1}',
  ];
  const wrongCompanies = ['', 'comp_', 'null', '__proto__', ...ids.foreign.projectId];
  const keys = ['', 'é', 'x'.repeat(256), 'a\tb'];
  const takesKey = operation.parameters.some(({ name }) => name === 'Idempotency-Key');
  return [
    without('no key', 'x-api-key'),
    withHeader('wrong key', drafts, 'x-api-key', wrongKeys),
    withHeader('wrong companyid', drafts, 'companyid', wrongCompanies),
    ...(isRequired(operation, 'companyid') ? [without('no companyid', 'companyid')] : []),
    ...(takesKey ? [withHeader('wrong Idempotency-Key', drafts, 'Idempotency-Key', keys)] : []),
  ];
}

function brokenQueries({ parameters }: Operation, drafts: fc.Arbitrary<Draft>): Broken[] {
  const ofQuery = parameters.filter((each) => each.in === 'query');
  const names = ofQuery.flatMap(({ name }) => [name, snakeCase(name)]);
  const unknown = fc
    .constantFrom(...UNKNOWN_PARAMETERS.filter((name) => !names.includes(name)))
    .chain((name) =>
      changed('unknown query parameter', drafts, ({ query }) => ({
        query: [...query, [name, '1']],
      })),
    );
  const wrong = ofQuery.map(({ name, schema }) =>
    fc.constantFrom(...wrongTexts(schema)).chain((text) =>
      changed('wrong query parameter', drafts, ({ query }) => ({
        query: [...query.filter(([each]) => each !== name), [name, text]],
      })),
    ),
  );
  const required = ofQuery.filter((each) => each.required);
  return [
    unknown,
    ...wrong,
    ...required.map(({ name }) =>
      changed('missing query parameter', drafts, ({ query }) => ({
        query: query.filter(([each]) => each !== name),
      })),
    ),
    ...(names.length > 0 ? [twice(names[0] ?? '', drafts)] : []),
  ];
}

function twice(name: string, drafts: fc.Arbitrary<Draft>): Broken {
  return changed('query parameter given twice', drafts, ({ query }) => ({
    query: [...query.filter(([each]) => each !== name), [name, '1'], [name, '1']],
  }));
}

/** Returns invalid texts for a query parameter, also where it is a number in digits. */
function wrongTexts(schema: JsonSchema): string[] {
  const { minimum, maximum, maxLength } = schema as Record<string, number | undefined>;
  const pattern = typeof schema.pattern === 'string' ? new RegExp(schema.pattern, 'u') : null;
  if (schema.type === 'integer') {
    const over = [Number(minimum) - 1, Number(maximum) + 1].map(String);
    return [
      ...over,
      'abc',
      '',
      '1.5',
      '1e2',
      ' 1',
      '0x10',
      'NaN',
      '9'.repeat(30),
      '{"$gt":""}',
      '٣',
    ];
  }
  if (schema.enum || schema.pattern || schema.format) {
    return [
      '',
      'x y',
      '__proto__',
      '{"$ne":null}',
      '2026-02-30T00:00:00Z',
      'PENDING',
      'msg_',
      '\0',
    ].filter((text) => pattern?.test(text) !== true);
  }
  return ['', 'x'.repeat(Number(maxLength) + 1)];
}

function brokenPaths(operation: Operation, drafts: fc.Arbitrary<Draft>): Broken[] {
  if (!operation.path.includes('{')) return [];
  const raw = ['%', '%ZZ', '%E0%A4%A', '%C0%AF', '%ff'];
  return [
    fc
      .tuple(drafts, fc.constantFrom(...raw))
      .map(([draft, text]) =>
        rewritten(toWire(draft, 'bad percent-encoding'), operation.path, text),
      ),
    fc.constantFrom(...ODD_IDS).chain((id) =>
      changed('odd id', drafts, ({ pathIds }) => ({
        pathIds: Object.fromEntries(Object.keys(pathIds).map((name) => [name, id])),
      })),
    ),
  ];
}

function rewritten(request: WireRequest, template: string, text: string): WireRequest {
  const query = request.path.split('?')[1];
  const path = template.replace(/\{\w+\}/, text);
  return { ...request, path: query === undefined ? path : `${path}?${query}` };
}

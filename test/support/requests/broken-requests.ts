import fc from 'fast-check';
import type { JsonSchema, Operation } from '../api/api-document.ts';
import { brokenBodies } from './broken-bodies.ts';
import { ODD_IDS } from './known-ids.ts';
import { type Draft, type RequestDeps, withJsonType } from './valid-requests.ts';
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
    ...(operation.isForEveryone ? [] : [without('no key', 'x-api-key')]),
    withHeader('wrong key', drafts, 'x-api-key', wrongKeys),
    withHeader('wrong companyid', drafts, 'companyid', wrongCompanies),
    ...(operation.needsCompanyId ? [without('no companyid', 'companyid')] : []),
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

const TOO_MANY_BYTES = 262_145;
const TOO_MANY_BYTES_OF_LARGE = 1_048_577;
/** Routes whose body may have a megabyte. */
const LARGE = /\/(batch|import-event-types)$/;
const TOO_DEEP = 66;

const NOT_OBJECTS = [
  'null',
  '[]',
  '"text"',
  '1',
  'NaN',
  '{a:1}',
  "{'a':1}",
  '{"a":1,}',
  '[{}]',
  '{',
];
/** A stray byte, an overlong slash, half of a surrogate pair, a cut sequence. */
const NOT_UTF_8 = [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xe2, 0x82]];

/** Generates bodies that are no JSON object in UTF-8, or that come with another content type. */
function brokenBytes(operation: Operation, drafts: fc.Arbitrary<Draft>): Broken[] {
  const withText = (what: string, change: (text: string, at: number) => string | Buffer): Broken =>
    fc.tuple(drafts, fc.nat()).map(([draft, at]) => {
      const text = JSON.stringify(draft.body ?? {});
      return { ...toWire(withJsonType(draft), what), body: Buffer.from(change(text, at)) };
    });
  const hasPayload = operation.id === 'createMessage';
  return [
    withText('cut JSON', (text, at) => text.slice(0, 1 + (at % (text.length - 1)))),
    withText('not an object', (_, at) => NOT_OBJECTS[at % NOT_OBJECTS.length] ?? ''),
    withText('two objects', (text) => text + text),
    withText(
      'key given twice',
      (text) => `{"name":1,"name":1${text === '{}' ? '' : ','}${text.slice(1)}`,
    ),
    withText('byte-order mark', (text) => `\ufeff${text}`),
    withText('not UTF-8', notUtf8),
    ...(hasPayload ? [withText('too deep', tooDeep)] : []),
    ...contentTypes(drafts),
    // Rarely: these bodies are large and always the same.
    fc
      .nat({ max: 9 })
      .chain((dice) =>
        dice === 0
          ? withText('too large', (text) => padded(text, operation))
          : withText('compressed', same).map(compressed),
      ),
  ];
}

const same = (text: string): string => text;

function notUtf8(text: string, at: number): Buffer {
  const bytes = Buffer.from(text);
  const place = at % (bytes.length + 1);
  const stray = Buffer.from(NOT_UTF_8[at % NOT_UTF_8.length] ?? []);
  return Buffer.concat([bytes.subarray(0, place), stray, bytes.subarray(place)]);
}

function tooDeep(): string {
  return `{"appId":"app_1","payload":${'{"a":'.repeat(TOO_DEEP)}1${'}'.repeat(TOO_DEEP)}}`;
}

function padded(text: string, { path }: Operation): string {
  const bytes = LARGE.test(path) ? TOO_MANY_BYTES_OF_LARGE : TOO_MANY_BYTES;
  return text + ' '.repeat(Math.max(0, bytes - Buffer.byteLength(text)));
}

function compressed<Request extends { headers: Record<string, string> }>(
  request: Request,
): Request {
  return { ...request, headers: { ...request.headers, 'content-encoding': 'gzip' } };
}

const OTHER_TYPES = [
  ...['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'json', '*/*', ''],
  ...['multipart/form-data; boundary=x', 'application/json-patch', 'text/json'],
];

function contentTypes(drafts: fc.Arbitrary<Draft>): Broken[] {
  return [
    fc.tuple(drafts, fc.constantFrom(...OTHER_TYPES)).map(([draft, type]) => {
      const headers = { ...draft.headers, 'content-type': type };
      return toWire({ ...draft, headers, body: draft.body ?? {} }, 'wrong content type');
    }),
  ];
}

/** Generates the same requests in other spellings that the document allows: keys, white space, media type. */
export function respelledRequests(drafts: fc.Arbitrary<Draft>): fc.Arbitrary<WireRequest> {
  const types = ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/vnd.a.b+json'];
  return fc
    .record({
      draft: drafts,
      isSnake: fc.boolean(),
      indent: fc.nat(3),
      type: fc.constantFrom(...types),
    })
    .map(({ draft, isSnake, indent, type }) => {
      const spell = (name: string): string => (isSnake ? snakeCase(name) : name);
      const query = draft.query.map(([name, value]): [string, string] => [spell(name), value]);
      const request = toWire({ ...draft, query }, 'valid');
      if (!draft.body) return request;
      const fields = Object.entries(draft.body).map(([name, value]) => [spell(name), value]);
      const body = Buffer.from(JSON.stringify(Object.fromEntries(fields), null, indent));
      return { ...request, body, headers: { ...request.headers, 'content-type': type } };
    });
}

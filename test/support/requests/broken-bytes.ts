import fc from 'fast-check';
import type { Operation } from '../api/api-document.ts';
import { withJsonType, type Draft } from './valid-requests.ts';
import { toWire, type Broken } from './wire-request.ts';

const TOO_MANY_BYTES = 262_145;
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
export function brokenBytes(operation: Operation, drafts: fc.Arbitrary<Draft>): Broken[] {
  const withText = (what: string, change: (text: string, at: number) => string | Buffer): Broken =>
    fc.tuple(drafts, fc.nat()).map(([draft, at]) => {
      const text = JSON.stringify(draft.body ?? {});
      return { ...toWire(withJsonType(draft), what), body: Buffer.from(change(text, at)) };
    });
  const hasPayload = operation.id.startsWith('webhookMessageCreate');
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
        dice === 0 ? withText('too large', padded) : withText('compressed', same).map(compressed),
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

function padded(text: string): string {
  return text + ' '.repeat(Math.max(0, TOO_MANY_BYTES - Buffer.byteLength(text)));
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

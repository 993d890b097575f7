import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { ApiError } from '../api-error.ts';
import { readBody } from './read-body.ts';

const schema = z.object({
  name: z.string('must be text').max(5, 'is too long').optional(),
  projectId: z.string('must be text'),
  customHeaders: z.array(z.strictObject({ key: z.string(), value: z.string() })).optional(),
  payload: z.record(z.string(), z.unknown()).optional(),
});

const read = (text: string) => readBody(Buffer.from(text), schema);

function refusalOf(bytes: Buffer | string): ApiError {
  try {
    readBody(Buffer.from(bytes), schema);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('the body was accepted');
}

describe('the keys of a body', () => {
  test('are read in camelCase and in snake_case', () => {
    const fields = { projectId: 'proj_1', customHeaders: [{ key: 'a', value: 'b' }] };
    const { projectId, customHeaders } = fields;
    expect(read(JSON.stringify(fields)).value).toEqual(fields);
    const snake = { project_id: projectId, custom_headers: customHeaders };
    expect(read(JSON.stringify(snake)).value).toEqual(fields);
  });

  test('may be given in both spellings with one value, and not with two', () => {
    expect(read('{"projectId":"a","project_id":"a"}').value).toEqual({ projectId: 'a' });
    const refusal = refusalOf('{"projectId":"a","project_id":"b"}');
    expect(refusal.problems).toEqual([
      {
        path: 'projectId',
        message: 'is given as projectId and as project_id, with different values',
      },
    ]);
  });

  test('that are unknown are reported as they were written, at every level', () => {
    const refusal = refusalOf(
      '{"projectId":"a","auth_metod":1,"customHeaders":[{"key":"a","value":"b","x":1}]}',
    );
    expect(refusal.problems.map(({ path }) => path).sort()).toEqual([
      'auth_metod',
      'customHeaders.0.x',
    ]);
    expect(refusal.problems[0]?.message).toBe('is not a field of this request');
  });

  test('inside the payload are not checked', () => {
    const { value, textOf } = read(
      '{"projectId":"a","payload":{"some_key":1,"some_key":2,"nameX":3}}',
    );
    expect(value.payload).toEqual({ some_key: 2, nameX: 3 });
    expect(textOf('payload')).toBe('{"some_key":1,"some_key":2,"nameX":3}');
  });

  test('are refused when given twice', () => {
    const refusal = refusalOf('{"projectId":"a","projectId":"a"}');
    expect([refusal.status, refusal.code]).toEqual([400, 'invalid_json']);
    expect(refusal.message).toContain('"projectId" is given twice');
  });

  test.each(['__proto__', 'constructor', 'toString', 'has_own_property'])(
    'such as %s are reported as unknown',
    (key) => {
      const refusal = refusalOf(`{"projectId":"a","${key}":{"polluted":true}}`);
      expect(refusal.problems).toEqual([{ path: key, message: 'is not a field of this request' }]);
      expect('polluted' in {}).toBe(false);
    },
  );
});

describe('the problems of a body', () => {
  test('are reported all at once', () => {
    const refusal = refusalOf('{"name":"too long a name","other":1}');
    expect([refusal.status, refusal.code]).toEqual([400, 'invalid_request']);
    expect(refusal.problems).toEqual(
      expect.arrayContaining([
        { path: 'name', message: 'is too long' },
        { path: 'projectId', message: 'is required' },
        { path: 'other', message: 'is not a field of this request' },
      ]),
    );
    expect(refusal.problems).toHaveLength(3);
  });

  test('include two spellings of one key', () => {
    const refusal = refusalOf('{"projectId":"a","project_id":"b","other":1}');
    expect(refusal.problems.map(({ path }) => path).sort()).toEqual(['other', 'projectId']);
  });

  test('distinguish a wrong type from a missing field', () => {
    expect(refusalOf('{"projectId":null}').problems).toEqual([
      { path: 'projectId', message: 'must be text' },
    ]);
  });
});

describe('the bytes of a body', () => {
  test.each([
    ['a byte-order mark', Buffer.from('\ufeff{"projectId":"a"}')],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['an encoded surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['no content', Buffer.alloc(0)],
    ['no JSON', Buffer.from('{')],
    ['a list', Buffer.from('[]')],
    ['65 levels', Buffer.from(`{"payload":${'['.repeat(65)}${']'.repeat(65)}}`)],
  ])('with %s are refused', (_what, bytes) => {
    const refusal = refusalOf(bytes);
    expect([refusal.status, refusal.code]).toEqual([400, 'invalid_json']);
  });

  test('are kept for each field as they were written, in either spelling', () => {
    const { textOf } = read('{"project_id" : "\\u0061" , "payload":\n{"n":12345678901234567890} }');
    expect(textOf('payload')).toBe('{"n":12345678901234567890}');
    expect(textOf('projectId')).toBe('"\\u0061"');
    expect(textOf('name')).toBeUndefined();
  });
});

describe('hostile text', () => {
  const HOSTILE = ['$where', '$gt', 'a.b', '__proto__', 'constructor.prototype', '\u0000'];

  test.each(HOSTILE)('%j as a key is reported as unknown', (key) => {
    const refusal = refusalOf(`{"projectId":"a",${JSON.stringify(key)}:{"polluted":1}}`);
    expect(refusal.problems).toEqual([{ path: key, message: 'is not a field of this request' }]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test.each(HOSTILE)('%j as a value is text', (text) => {
    expect(read(JSON.stringify({ projectId: text })).value).toEqual({ projectId: text });
  });

  test.each(['{"$gt":""}', '{"$ne":null}', '["a"]', '{"__proto__":{"polluted":1}}', 'true', '1'])(
    '%s is refused where text is expected',
    (json) => {
      const { problems } = refusalOf(`{"projectId":${json}}`);
      expect(problems).toEqual([{ path: 'projectId', message: 'must be text' }]);
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    },
  );

  test('inside the payload is kept as it is and changes no prototype', () => {
    const payload = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    const { value, textOf } = read(`{"projectId":"a","payload":${payload}}`);
    expect(textOf('payload')).toBe(payload);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe('half of a surrogate pair', () => {
  test('is refused in a field and kept in a payload', () => {
    expect(refusalOf(String.raw`{"projectId":"\ud800"}`).problems).toEqual([
      { path: 'projectId', message: 'contains half of a surrogate pair' },
    ]);
    const nested = String.raw`{"projectId":"a","theme":{"name":"\udc00","list":[{"key":"\ud800 "}]}}`;
    const problems = refusalOf(nested).problems.filter(({ message }) => message.includes('half'));
    expect(problems.map(({ path }) => path)).toEqual(['theme.name', 'theme.list.0.key']);
    const body = read(String.raw`{"projectId":"\ud83d\ude00","payload":{"a":"\ud800"}}`);
    expect(body.value.projectId).toBe('😀');
    expect(body.textOf('payload')).toBe(String.raw`{"a":"\ud800"}`);
  });
});

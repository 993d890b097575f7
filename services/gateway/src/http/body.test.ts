import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import express, { type RequestHandler } from 'express';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { z } from 'zod';
import {
  ENVELOPE,
  openConnection,
  parseAnswer,
  type RawConnection,
} from '../../../../test/support/receivers/raw-connection.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { ApiError } from '../api-error.ts';
import { createReadList, createReceiveBody, readBody } from './body.ts';
import { createHardenedServer } from './harden-server.ts';
import { createRequestMemory, type RequestMemory } from './request-memory.ts';
import { sendError } from './send-error.ts';

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

describe('a list that is read entry by entry', () => {
  let turns: number;
  const readList = createReadList({
    name: 'messages',
    maxEntries: 1_000,
    schema,
    large: { field: 'payload', maxBytes: 1_000 },
  });
  const readAll = (text: string | Buffer, earlier: ApiError['problems'] = []) =>
    readList(Buffer.from(text), {
      earlier,
      nextSlice: () => Promise.resolve(void (turns += 1)),
      toEntry: ({ value, textOf, bytes }, index) => {
        return { index, id: value.projectId, payload: textOf('payload'), text: bytes.toString() };
      },
    });
  const problemsOf = async (text: string, earlier?: ApiError['problems']) =>
    ((await readAll(text, earlier).catch((error: unknown) => error)) as ApiError).problems;
  const listOf = (...entries: string[]) => `{"messages":[${entries.join(', ')}]}`;

  beforeEach(() => {
    turns = 0;
  });

  test('has each payload and each entry byte for byte', async () => {
    const one = '{"projectId":"a","payload":{ "n":1.0, "n":12345678901234567890 }}';
    const other = '{"payload": {"é":"\\u00e9"} ,"project_id":"b"}';
    expect(await readAll(listOf(one, other))).toEqual([
      { index: 0, id: 'a', payload: '{ "n":1.0, "n":12345678901234567890 }', text: one },
      { index: 1, id: 'b', payload: '{"é":"\\u00e9"}', text: other },
    ]);
  });

  test('takes a turn for every 64 entries, and for every 64 KiB', async () => {
    await readAll(listOf(...Array<string>(200).fill('{"projectId":"a"}')));
    expect(turns).toBe(3);
    const large = `{${' '.repeat(7_000)}"projectId":"a","payload":{"a":"${'x'.repeat(900)}"}}`;
    await readAll(listOf(...Array<string>(20).fill(large)));
    expect(turns).toBe(5);
  });

  test('names the place of every problem', async () => {
    const deep = `{"projectId":"a","payload":${'['.repeat(70)}${']'.repeat(70)}}`;
    const earlier = [{ path: 'companyid', message: 'must not be empty' }];
    expect(
      await problemsOf(
        listOf(
          '{"projectId":"a"}',
          '{"name":"too long","extra":1}',
          '17',
          '{"projectId":"a","project\\u0049d":"b"}',
          deep,
          `{"projectId":"a","payload":{"a":"${'x'.repeat(1_000)}"}}`,
          `{"projectId":"a","payload":{"a":"${'x'.repeat(20_000)}"}}`,
          '{"projectId":"\\ud800"}',
        ),
        earlier,
      ),
    ).toEqual([
      ...earlier,
      { path: 'messages.1.name', message: 'is too long' },
      { path: 'messages.1.projectId', message: 'is required' },
      { path: 'messages.1.extra', message: 'is not a field of this request' },
      { path: 'messages.2', message: 'is not acceptable: must be a JSON object' },
      {
        path: 'messages.3.projectId',
        message: 'is not acceptable: key "projectId" is given twice',
      },
      {
        path: 'messages.4.payload',
        message: 'is not acceptable: nested deeper than 64 levels',
      },
      { path: 'messages.5.payload', message: 'has more than 1000 bytes' },
      { path: 'messages.6.payload', message: 'has more than 1000 bytes' },
      { path: 'messages.7.projectId', message: 'contains half of a surrogate pair' },
    ]);
  });

  test('reports a hundred problems at most', async () => {
    expect(await problemsOf(listOf(...Array<string>(1_000).fill('{}')))).toHaveLength(100);
  });

  test.each([
    ['{"messages":[]}', [{ path: 'messages', message: 'must have at least one entry' }]],
    ['{"messages":{"0":{}}}', [{ path: 'messages', message: 'must be a list' }]],
    ['{}', [{ path: 'messages', message: 'is required' }]],
    [
      '{"messages":[{"projectId":"a"}],"other":[1]}',
      [{ path: 'other', message: 'is not a field of this request' }],
    ],
    [
      listOf(...Array<string>(1_001).fill('{"projectId":"a"}')),
      [{ path: 'messages', message: 'must have at most 1000 entries' }],
    ],
    [`{${'"a":[],'.repeat(101)}"a":[]}`, [{ path: '', message: 'must have at most 100 fields' }]],
  ])('is refused as %.50s', async (text, problems) => {
    expect(await problemsOf(text)).toEqual(problems);
  });

  test.each([
    ['{"messages":[{"projectId":"a"},]}', 'not valid JSON in messages.1'],
    ['{"messages":[{"projectId":a}]}', 'not valid JSON in messages.0'],
    ['{"messages":[{"projectId":"a"}', 'not valid JSON'],
    ['{"messages":[{"projectId":"a"}]}]', 'not valid JSON'],
    ['[{"projectId":"a"}]', 'must be a JSON object'],
    [`[${'{},'.repeat(101)}{}]`, 'must be a JSON object'],
    ['\ufeff{"messages":[]}', 'byte-order mark'],
  ])('is no JSON as %s', async (text, why) => {
    const refusal = (await readAll(text).catch((error: unknown) => error)) as ApiError;
    expect([refusal.code, refusal.message]).toEqual(['invalid_json', expect.stringContaining(why)]);
  });

  test('is no JSON with bytes that are not UTF-8', async () => {
    const text = Buffer.from(listOf('{"projectId":"a"}'));
    text[text.indexOf('a"')] = 0xff;
    await expect(readAll(text)).rejects.toMatchObject({ code: 'invalid_json' });
  });
});

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
    expect(refusalOf('{"projectId":17}').problems).toEqual([
      { path: 'projectId', message: 'must be text' },
    ]);
    expect(refusalOf('{"projectId":null}').problems).toEqual([
      { path: 'projectId', message: 'is required, so it cannot be null' },
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

describe('receive body', () => {
  const LIMIT = 262_144;

  let server: Server;
  let memory: RequestMemory;
  /** The server's side, in the order of their opening. */
  let connections: Socket[];

  beforeEach(async () => {
    const app = express();
    // One company alone may hold half of it: two of the largest bodies.
    memory = createRequestMemory(4 * LIMIT);
    const identify: RequestHandler = (request, response, next) => {
      response.locals.caller = { companyId: request.get('companyid') ?? 'comp_a' };
      next();
    };
    const answer: RequestHandler = (request, response) => {
      response.json({ bytes: (request.body as Buffer).length });
    };
    const receive = (bounds?: Parameters<typeof createReceiveBody>[1]): RequestHandler => {
      const receiveBody = createReceiveBody(memory, bounds);
      return async (request, response, next) => {
        request.body = await receiveBody(request, response);
        next();
      };
    };
    app.post('/', identify, receive(), answer);
    const impatient = { maxBytes: LIMIT, withinMs: 1, freeChunks: 1_024 };
    app.post('/impatient', identify, receive(impatient), answer);
    app.use(sendError(createLogger('test', 'silent')));
    server = createHardenedServer(app);
    connections = [];
    server.on('connection', (socket) => connections.push(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  function post(headers: string, body = '', path = '/'): RawConnection {
    const text = `POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n${body}`;
    return openConnection((server.address() as AddressInfo).port, text);
  }

  /** Returns one chunk; an empty one ends the body. */
  const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

  describe('a body of 262,144 bytes [security]', () => {
    test('is accepted with its length', async () => {
      const { until } = post(`Content-Length: ${LIMIT}`, 'x'.repeat(LIMIT));
      expect(await until(ENVELOPE)).toContain(`"bytes":${LIMIT}`);
    });

    test('is accepted without its length', async () => {
      const { until } = post('Transfer-Encoding: chunked', chunk(LIMIT) + chunk(0));
      expect(await until(ENVELOPE)).toContain(`"bytes":${LIMIT}`);
    });
  });

  describe('a body of one byte more [security]', () => {
    test('is refused before a byte of it arrives', async () => {
      const { until } = post(`Content-Length: ${LIMIT + 1}`);
      const { status, body } = parseAnswer(await until(ENVELOPE));
      expect([status, body.code]).toEqual([413, 'body_too_large']);
    });

    test('is refused without its length as soon as that byte arrives, before the end', async () => {
      const { until } = post('Transfer-Encoding: chunked', chunk(LIMIT) + chunk(1));
      const { status, body } = parseAnswer(await until(ENVELOPE));
      expect([status, body.code]).toEqual([413, 'body_too_large']);
    });

    test('is refused when the client asks whether to send it', async () => {
      const { until } = post(`Expect: 100-continue\r\nContent-Length: ${LIMIT + 1}`);
      expect(await until(ENVELOPE)).toMatch(/^HTTP\/1\.1 413 /);
    });
  });

  test('an announced body gets 100 Continue when it will be accepted [security]', async () => {
    const { socket, until } = post('Expect: 100-continue\r\nContent-Length: 2');
    await until(/^HTTP\/1\.1 100 Continue/);
    socket.write('{}');
    await until(/"bytes":2/);
  });

  test.each(['gzip', 'deflate', 'br', 'GZIP', 'identity, gzip'])(
    'a body with Content-Encoding %s is refused before it arrives',
    async (encoding) => {
      const { until } = post(`Content-Encoding: ${encoding}\r\nContent-Length: 9`);
      const { status, body } = parseAnswer(await until(ENVELOPE));
      expect([status, body.code]).toEqual([415, 'unsupported_media_type']);
    },
  );

  test('a body with Content-Encoding identity is accepted [security]', async () => {
    await post('Content-Encoding: identity\r\nContent-Length: 2', '{}').until(/"bytes":2/);
  });

  test('a missing body is an empty one [security]', async () => {
    await post('X: y').until(/"bytes":0/);
  });

  describe('bodies that are being read [security]', () => {
    const half = `Content-Length: ${LIMIT}`;
    const unfinished = (): RawConnection => post(half, 'x'.repeat(LIMIT - 1));
    const untilHeld = (bytes: number) =>
      eventually(`${bytes} bytes`, () => memory.usedBytes() === bytes);

    test('are refused with 503 when their company holds too much memory, but not because of another company', async () => {
      const held = [unfinished(), unfinished()];
      await untilHeld(2 * LIMIT);
      const { status, body } = parseAnswer(
        await post('Content-Length: 9', '{"n": 12}').until(ENVELOPE),
      );
      expect([status, body.code]).toEqual([503, 'unavailable']);
      await post('companyid: comp_b\r\nContent-Length: 2', '{}').until(/"bytes":2/);
      for (const { socket } of held) socket.destroy();
      await untilHeld(0);
    });

    test('count as memory until the response is sent', async () => {
      const { socket, until } = unfinished();
      await untilHeld(LIMIT);
      socket.write('x');
      await until(ENVELOPE);
      await untilHeld(0);
    });
  });

  test('a body that does not arrive in its time is refused with 408 [security]', async () => {
    const { until } = post('Content-Length: 9', 'part', '/impatient');
    const { status, body } = parseAnswer(await until(ENVELOPE));
    expect([status, body.code]).toEqual([408, 'request_timeout']);
  });

  describe('a body in many small chunks [security]', () => {
    const HEADERS = 'Transfer-Encoding: chunked';

    test('is accepted with four bytes in each', async () => {
      const { until } = post(HEADERS, chunk(4).repeat(20_000) + chunk(0));
      expect(await until(ENVELOPE)).toContain('"bytes":80000');
    });

    test('is accepted with one byte in each of a thousand', async () => {
      const { until } = post(HEADERS, chunk(1).repeat(1_000) + chunk(0));
      expect(await until(ENVELOPE)).toContain('"bytes":1000');
    });

    test('is refused with one byte in each of more, and read no further', async () => {
      const { socket, until } = post(HEADERS, chunk(1).repeat(1_367));
      const { status, body } = parseAnswer(await until(ENVELOPE));
      expect([status, body.code]).toEqual([400, 'chunks_too_small']);
      expect(memory.usedBytes()).toBe(0);
      const [accepted] = connections;
      const before = accepted?.bytesRead;
      await eventually('the server reads no more', () => accepted?.isPaused() === true);
      socket.write(chunk(1).repeat(10_000));
      await post('X: y').until(ENVELOPE);
      expect(accepted?.bytesRead).toBe(before);
    });

    test('costs its company the size of its buffer, and not of its chunks', async () => {
      post(HEADERS, chunk(1).repeat(1_000));
      await eventually('1,024 bytes', () => memory.usedBytes() === 1_024);
    });
  });
});

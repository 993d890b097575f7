import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import {
  failure,
  reset,
  resetInBody,
  silence,
  slowBody,
  startScriptedApi,
  success,
} from '../check/scripted-api.ts';
import { API_KEY, errorOf, startScriptedClient } from '../check/scripted-client.ts';
import { ApiError, ConnectionError, Posthorn, TimeoutError } from './index.ts';
import { apiErrorOf, type PosthornError } from './errors.ts';
import { parseRetryAfter } from './requests.ts';
import { retryDelayMs } from './transport.ts';

const NOW = { 'retry-after': '0' };

const { api, clientOf } = await startScriptedClient();

const send = (client: Posthorn, options = {}) =>
  client.messages.send({ appId: 'app_1', payload: { n: 1 } }, options);

describe('a call', () => {
  test('returns the data, with fields that this version does not know', async () => {
    api.answerWith(success({ id: 'app_1', future: [1] }));
    expect(await clientOf().apps.get('app_1')).toEqual({ id: 'app_1', future: [1] });
    expect(api.got[0]).toMatchObject({
      method: 'GET',
      url: '/api/v1/apps/app_1',
      headers: { authorization: `Bearer ${API_KEY}`, 'x-posthorn-retry-count': '0' },
    });
    expect(api.got[0]?.headers).not.toHaveProperty('idempotency-key');
  });

  test('returns the response with it', async () => {
    api.answerWith(success({ id: 'app_1' }));
    const { data, response, requestId } = await clientOf().apps.get('app_1').withResponse();
    expect([data.id, response.status, requestId]).toEqual(['app_1', 200, 'request-1']);
  });

  test('keeps the path of the base URL, writes ids into the path and leaves out what is undefined', async () => {
    api.answerWith(success({}));
    const client = clientOf({ baseUrl: `${api.baseUrl}/hooks/` });
    await client.webhooks.get('uid:a b/c', { secrets: false });
    await client.apps.counts(['app_1', 'uid:x']);
    await client.webhooks.update('wh_1', { name: 'é' }, { upsert: undefined });
    expect(api.got.map(({ url }) => url)).toEqual([
      '/hooks/api/v1/webhooks/uid:a%20b%2Fc?secrets=false',
      '/hooks/api/v1/app-counts?ids=app_1%2Cuid%3Ax',
      '/hooks/api/v1/webhooks/wh_1',
    ]);
    expect(api.got[2]?.body).toBe('{"name":"é"}');
  });

  test.each(['', '.', '..', undefined as unknown as string])(
    'refuses the id %j, which is another address',
    async (id) => {
      await expect(clientOf().apps.delete(id)).rejects.toThrow(TypeError);
      expect(api.got).toEqual([]);
    },
  );

  test('reads the key for each attempt when it is a function', async () => {
    api.answerWith(failure(503, 'unavailable', NOW), success({}));
    const keys = ['first', 'second\n'];
    await clientOf({ apiKey: () => Promise.resolve(keys.shift() ?? '') }).me();
    const sent = api.got.map(({ headers }) => headers.authorization);
    expect(sent).toEqual(['Bearer first', 'Bearer second']);
  });
});

describe('the settings', () => {
  test('come from the environment when they are not given', async () => {
    api.answerWith(success({}));
    Object.assign(process.env, { POSTHORN_API_KEY: 'phk_env', POSTHORN_URL: api.baseUrl });
    try {
      await new Posthorn().me();
    } finally {
      delete process.env.POSTHORN_API_KEY;
      delete process.env.POSTHORN_URL;
    }
    expect(api.got[0]?.headers.authorization).toBe('Bearer phk_env');
    expect(() => new Posthorn({ baseUrl: api.baseUrl })).toThrow('POSTHORN_API_KEY');
  });

  test.each(['', 'posthorn.example', 'ftp://x', 'https://user:hidden@x'])(
    'refuse the base URL %j without showing it',
    (baseUrl) => {
      const error = (() => {
        try {
          clientOf({ baseUrl });
          return null;
        } catch (thrown) {
          return thrown;
        }
      })();
      expect(error).toBeInstanceOf(TypeError);
      expect(String(error)).not.toContain('hidden');
    },
  );
});

describe('a retry', () => {
  test.each([
    [408, 'request_timeout'],
    [409, 'idempotency_key_running'],
    [429, 'rate_limited'],
    [500, 'internal_error'],
    [502, 'unknown'],
    [503, 'unavailable'],
    [504, 'unknown'],
  ])('follows %d %s, with the same key and body', async (status, code) => {
    api.answerWith(failure(status, code, NOW), success({ id: 'msg_1' }));
    expect(await send(clientOf())).toEqual({ id: 'msg_1' });
    const [first, second] = api.got;
    expect(first?.headers['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/);
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    expect(second?.body).toBe(first?.body);
    expect(second?.headers['x-posthorn-retry-count']).toBe('1');
  });

  test.each([
    [400, 'invalid_json', 'BadRequestError'],
    [400, 'invalid_request', 'ValidationError'],
    [401, 'unauthorized', 'AuthenticationError'],
    [403, 'insufficient_scope', 'PermissionError'],
    [404, 'not_found', 'NotFoundError'],
    [409, 'uid_taken', 'ConflictError'],
    [413, 'body_too_large', 'BadRequestError'],
    [422, 'idempotency_key_reused', 'ConflictError'],
    [501, 'not_implemented', 'ServerError'],
  ])('does not follow %d %s, a %s', async (status, code, name) => {
    api.answerWith(failure(status, code, NOW));
    const error = (await errorOf(send(clientOf()))) as ApiError;
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ name, status, code, requestId: 'request-2', retryAfterMs: 0 });
    expect(error.message).toBe(`It is ${code}.`);
    expect(api.got).toHaveLength(1);
  });

  test('is made twice at most, and the error has the key with which to send again', async () => {
    api.answerWith(failure(503, 'unavailable', NOW));
    const error = (await errorOf(send(clientOf(), { idempotencyKey: 'order-17' }))) as ApiError;
    expect(error).toMatchObject({ name: 'ServerError', idempotencyKey: 'order-17' });
    expect(api.got.map(({ headers }) => headers['idempotency-key'])).toEqual(
      Array(3).fill('order-17'),
    );
  });

  test('is not made with maxRetries 0, of the client and of the call', async () => {
    api.answerWith(failure(503, 'unavailable', NOW));
    await errorOf(send(clientOf({ maxRetries: 0 })));
    await errorOf(send(clientOf(), { maxRetries: 0 }));
    await errorOf(send(clientOf({ maxRetries: NaN })));
    expect(api.got).toHaveLength(3);
  });

  test.each([
    ['before the answer', reset],
    ['in the middle of the answer', resetInBody],
  ])('follows a reset %s', async (_when, step) => {
    api.answerWith(step, success({ id: 'msg_1' }));
    expect(await send(clientOf())).toEqual({ id: 'msg_1' });
    expect(new Set(api.got.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  });

  test('follows an answer that is not from Posthorn', async () => {
    const page = (response: { end: (text: string) => void }): void => {
      response.end('<html>');
    };
    api.answerWith(page, success({ id: 'msg_1' }));
    expect(await send(clientOf())).toEqual({ id: 'msg_1' });
  });

  test('of a POST without a key is made only when the connection was refused', async () => {
    api.answerWith(reset, success({}));
    expect(await errorOf(clientOf().resends.abort('rsnd_1'))).toBeInstanceOf(ConnectionError);
    api.answerWith(failure(503, 'unavailable', NOW), success({}));
    expect(await errorOf(clientOf().resends.abort('rsnd_1'))).toBeInstanceOf(ApiError);
    expect(api.got).toHaveLength(2);

    const gone = await startScriptedApi();
    await gone.close();
    const addresses = [gone.baseUrl, api.baseUrl];
    api.answerWith(success({ id: 'rsnd_1' }));
    const client = clientOf({
      fetch: (url, init) => fetch(url.replace(api.baseUrl, addresses.shift() ?? ''), init),
    });
    expect(await client.resends.abort('rsnd_1')).toEqual({ id: 'rsnd_1' });
  });

  test.each([
    ['a reset', reset],
    ['an answer that breaks off', resetInBody],
    ['503', failure(503, 'unavailable', NOW)],
  ])('of a DELETE that finds nothing after %s is done', async (_what, step) => {
    const gone = failure(404, 'not_found');
    api.answerWith(step, failure(429, 'rate_limited', NOW), gone);
    const { data, response } = await clientOf().webhooks.delete('wh_1').withResponse();
    expect([data, response.status, api.got.length]).toEqual([undefined, 404, 3]);
  });

  test.each([
    ['it is the first answer', 'DELETE', [failure(404, 'not_found')]],
    [
      'the first attempt was refused',
      'DELETE',
      [failure(429, 'rate_limited', NOW), failure(404, 'not_found')],
    ],
    ['a proxy answers', 'DELETE', [reset, failure(404, 'unknown')]],
    ['nothing is deleted', 'GET', [reset, failure(404, 'not_found')]],
  ])('that finds nothing is an error when %s', async (_when, method, steps) => {
    api.answerWith(...steps);
    const { webhooks } = clientOf();
    const call = method === 'GET' ? webhooks.get('wh_1') : webhooks.delete('wh_1');
    expect(await errorOf(call)).toMatchObject({ name: 'NotFoundError', status: 404 });
  });

  test('waits for Retry-After of up to a minute, else twice as long each time, less up to a quarter', () => {
    const after = (retryAfterMs: number): PosthornError =>
      apiErrorOf({ status: 429, code: 'rate_limited', message: '', requestId: null, retryAfterMs });
    expect(retryDelayMs(after(60_000), 0, 1)).toBe(60_000);
    expect(retryDelayMs(after(60_001), 0, 0)).toBe(500);
    const error = new ConnectionError('reset');
    const delays = [0, 1, 2, 3, 4, 5, 60].map((retries) => retryDelayMs(error, retries, 0));
    expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
    expect(retryDelayMs(error, 1, 1)).toBe(750);
  });

  test.each([
    ['12', 12_000],
    ['0', 0],
    ['Thu, 01 Jan 1970 00:01:30 GMT', 30_000],
    ['Thu, 01 Jan 1970 00:00:30 GMT', 0],
    ['soon', null],
    [null, null],
  ])('reads Retry-After %j', (value, expected) => {
    expect(parseRetryAfter(value, 60_000)).toBe(expected);
  });
});

describe('the time limit', () => {
  /** What a request works with; the test advances `setTimeout` only. */
  const REAL = ['nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'] as const;

  afterEach(() => {
    jest.useRealTimers();
  });

  test.each([
    ['no answer', silence],
    ['a slow body', slowBody],
  ])('ends an attempt with %s, and the next one follows', async (_what, step) => {
    const [asked, failed] = [Promise.withResolvers<undefined>(), Promise.withResolvers<string>()];
    const hangs: typeof step = (response, got) => {
      step(response, got);
      asked.resolve(undefined);
    };
    api.answerWith(hangs, success({ id: 'msg_1' }));
    jest.useFakeTimers({ doNotFake: [...REAL] });
    const logger = { debug: () => undefined, warn: failed.resolve };
    const sent = send(clientOf({ timeoutMs: 300, logger }));
    await asked.promise;
    jest.advanceTimersByTime(299);
    await new Promise(setImmediate);
    expect(api.got).toHaveLength(1);
    jest.advanceTimersByTime(1);
    expect(await failed.promise).toContain('Not complete within 300 ms');
    // Now it waits for half a second at most.
    jest.advanceTimersByTime(500);
    expect(await sent).toEqual({ id: 'msg_1' });
    expect(api.got).toHaveLength(2);
  });

  test('of a call takes the place of that of the client', async () => {
    api.answerWith(silence);
    const error = await errorOf(clientOf().me({ timeoutMs: 50, maxRetries: 0 }));
    expect(error).toBeInstanceOf(TimeoutError);
  });

  test.each([0, -1, NaN])('is refused when it is %p', async (timeoutMs) => {
    expect(await errorOf(clientOf({ timeoutMs }).me())).toBeInstanceOf(TypeError);
    expect(api.got).toHaveLength(0);
  });

  test('may be none', async () => {
    api.answerWith(success({ companyId: 'comp_1' }));
    expect(await clientOf({ timeoutMs: Infinity }).me()).toEqual({ companyId: 'comp_1' });
  });
});

describe('a signal', () => {
  test('ends a call before, in and between attempts, with its reason', async () => {
    const reason = new Error('shutting down');
    const before = AbortSignal.abort(reason);
    expect(await errorOf(clientOf().me({ signal: before }))).toBe(reason);
    expect(api.got).toHaveLength(0);

    for (const step of [silence, slowBody, failure(503, 'unavailable', { 'retry-after': '60' })]) {
      const controller = new AbortController();
      const { signal } = controller;
      let answered: () => void = () => undefined;
      const asked = new Promise<void>((resolve) => {
        answered = resolve;
      });
      api.answerWith((response, got) => {
        step(response, got);
        response.on('finish', answered);
        if (!response.writableEnded) answered();
      });
      const call = errorOf(clientOf().me({ signal }));
      await asked;
      controller.abort(reason);
      expect(await call).toBe(reason);
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    }
    expect(api.got).toHaveLength(3);
  });

  test('of the client ends calls and waits that have none of their own', async () => {
    const controller = new AbortController();
    const reason = new Error('shutting down');
    const client = clientOf({ signal: controller.signal });
    api.answerWith(success({ status: 'pending' }));
    const waiting = errorOf(client.messages.waitUntilFinal('msg_1'));
    controller.abort(reason);
    expect(await waiting).toBe(reason);
    expect(await errorOf(client.me())).toBe(reason);
    expect(await client.me({ signal: new AbortController().signal })).toBeDefined();
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  test('ends a call that has just read its API key', async () => {
    const controller = new AbortController();
    const reason = new Error('shutting down');
    const apiKey = (): Promise<string> => {
      controller.abort(reason);
      return Promise.resolve(API_KEY);
    };
    api.answerWith(success({ companyId: 'comp_1' }));
    const call = errorOf(clientOf({ apiKey }).me({ signal: controller.signal }));
    expect(await call).toBe(reason);
    expect(api.got).toHaveLength(0);
  });

  test('has no listener left of a call that has ended', async () => {
    api.answerWith(failure(503, 'unavailable', NOW), success({}));
    const { signal } = new AbortController();
    await clientOf().me({ signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('an answer from another server', () => {
  test('is an error without a code', async () => {
    api.answerWith((response) => response.writeHead(403).end('<html>'));
    expect(await errorOf(clientOf().me())).toMatchObject({
      name: 'PermissionError',
      code: 'unknown',
      message: 'The answer has the status 403',
      requestId: null,
    });
  });

  test('is not followed to another address', async () => {
    const location = `${api.baseUrl}/elsewhere`;
    api.answerWith((response) => response.writeHead(301, { location }).end());
    const error = (await errorOf(send(clientOf()))) as ApiError;
    expect(error).toMatchObject({ status: 301, code: 'unknown' });
    expect(error.message).toContain(location);
    expect(api.got).toHaveLength(1);
  });
});

describe('the API key [security]', () => {
  test('is in nothing that is printed', async () => {
    const lines: string[] = [];
    const logger = {
      debug: (line: string) => lines.push(line),
      warn: (line: string) => lines.push(line),
    };
    const client = clientOf({ logger });
    api.answerWith(failure(503, 'unavailable', NOW), reset, failure(401, 'unauthorized'));
    const error = await errorOf(client.me());
    const shown = [client, error].map((each) =>
      [inspect(each, { depth: null, showHidden: true }), JSON.stringify(each)].join(),
    );
    expect(lines.join('\n')).toMatch(
      /GET \/me: 503 in \d+ ms\nGET \/me failed \(.*\); retry 1 of 2 in 0 ms/,
    );
    expect([...shown, ...lines].join()).not.toContain(API_KEY);
  });

  test('is not in the error about a wrong one', async () => {
    const error = await errorOf(clientOf({ apiKey: `${API_KEY}\nx: y` }).me());
    expect(error).toBeInstanceOf(TypeError);
    expect(inspect(error)).not.toContain(API_KEY);
    expect(api.got).toHaveLength(0);
  });
});

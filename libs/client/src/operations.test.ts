import { describe, expect, test } from '@jest/globals';
import { failure, success } from '../check/scripted-api.ts';
import { API_KEY, errorOf, startScriptedClient } from '../check/scripted-client.ts';

const NOW = { 'retry-after': '0' };

const { api, clientOf } = await startScriptedClient();

describe('a request of any kind', () => {
  test('returns the data, and with its response the cursor of a list', async () => {
    api.answerWith(success([{ id: 'x_1' }], { nextCursor: 'b' }));
    const call = clientOf().request<{ id: string }[]>('GET', '/api/v1/future?a=1', {
      query: { ids: ['x', 'y'], none: undefined },
      headers: { traceparent: '00-1' },
    });
    const [first] = await call;
    const { nextCursor } = await call.withResponse();
    expect([first?.id, nextCursor]).toEqual(['x_1', 'b']);
    const { authorization, traceparent } = api.got[0]?.headers ?? {};
    expect([api.got[0]?.url, authorization, traceparent]).toEqual([
      '/api/v1/future?a=1&ids=x%2Cy',
      `Bearer ${API_KEY}`,
      '00-1',
    ]);
  });

  test('sends an object as JSON, and text byte for byte', async () => {
    api.answerWith(success({}));
    const client = clientOf();
    await client.request('PUT', '/webhooks/uid:a', { body: { name: 'é' } });
    await client.request('POST', '/future', { body: '{"n":1.0}' });
    await client.request('DELETE', '/future');
    const sent = api.got.map(({ method, url, headers, body }) =>
      [method, url, headers['content-type'], body].join(' '),
    );
    expect(sent).toEqual([
      'PUT /api/v1/webhooks/uid:a application/json {"name":"é"}',
      'POST /api/v1/future application/json {"n":1.0}',
      'DELETE /api/v1/future  ',
    ]);
  });

  test('is repeated as others, a POST only with its key', async () => {
    api.answerWith(failure(503, 'unavailable', NOW));
    const [options, maxRetries] = [{ idempotencyKey: 'order-17' }, 1];
    const client = clientOf({ maxRetries });
    expect(await errorOf(client.request('POST', '/future', options))).toMatchObject({
      name: 'ServerError',
      ...options,
    });
    await errorOf(client.request('POST', '/future'));
    await errorOf(client.request('GET', '/future'));
    await errorOf(client.request('GET', '/future', { maxRetries: 0 }));
    expect(api.got.map(({ method, headers }) => [method, headers['idempotency-key']])).toEqual([
      ['POST', 'order-17'],
      ['POST', 'order-17'],
      ['POST', undefined],
      ['GET', undefined],
      ['GET', undefined],
      ['GET', undefined],
    ]);
  });

  test('ends with its signal', async () => {
    const signal = AbortSignal.abort(new Error('shutting down'));
    expect(await errorOf(clientOf().request('GET', '/future', { signal }))).toBe(signal.reason);
  });

  test.each([
    ['https://evil.example/api/v1/me'],
    ['me'],
    ['/api/v1/../../metrics'],
    ['/a/%2E%2e/b'],
    ['/a/.\t./b'],
    ['/a\\..\\b'],
    ['/me#a'],
  ])('refuses the path %j [security]', async (path) => {
    expect(await errorOf(clientOf().request('GET', path))).toBeInstanceOf(TypeError);
    expect(api.got).toEqual([]);
  });

  test.each([
    ['post' as 'POST', undefined],
    ['GET', {}],
  ] as const)('refuses %s with the body %j', async (method, body) => {
    const call = clientOf().request(method, '/me', { body });
    expect(await errorOf(call)).toBeInstanceOf(TypeError);
    expect(api.got).toEqual([]);
  });
});

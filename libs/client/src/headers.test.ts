import { inspect } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import manifest from '../package.json' with { type: 'json' };
import { failure, success } from '../check/scripted-api.ts';
import { errorOf, startScriptedClient } from '../check/scripted-client.ts';

const NOW = { 'retry-after': '0' };

const { api, clientOf } = await startScriptedClient();

describe('the headers', () => {
  test('have the version of the package, unless there is another User-Agent', async () => {
    api.answerWith(success({}));
    await clientOf().me();
    await clientOf({ headers: { 'User-Agent': 'shop/1' } }).me();
    const { version } = manifest;
    const agents = api.got.map(({ headers }) => headers['user-agent']);
    expect(agents).toEqual([`posthorn-client/${version}`, 'shop/1']);
  });

  test('have no User-Agent of the client in a browser, where another origin may refuse it', async () => {
    const sent: RequestInit['headers'][] = [];
    Object.assign(globalThis, { document: {} });
    try {
      await clientOf({
        dangerouslyAllowBrowser: true,
        fetch: (_url, { headers }) => {
          sent.push(headers);
          return Promise.resolve(Response.json({ data: {} }));
        },
      }).me();
    } finally {
      Reflect.deleteProperty(globalThis, 'document');
    }
    expect(sent).toHaveLength(1);
    expect(sent[0]).not.toHaveProperty('user-agent');
  });

  test('of the client are in every attempt, and those of a call take their place by name', async () => {
    api.answerWith(failure(503, 'unavailable', NOW), success({}));
    const client = clientOf({ headers: { 'X-Proxy': 'a', 'X-Tenant': 'b' } });
    await client.me();
    await client.me({ headers: { 'x-tenant': 'c' } });
    const sent = api.got.map(({ headers }) => [headers['x-proxy'], headers['x-tenant']]);
    expect(sent).toEqual([
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'c'],
    ]);
  });

  test.each([
    ['Authorization', 'Basic hidden', 'from apiKey'],
    ['X-Api-Key', 'hidden', 'from apiKey'],
    ['x-posthorn-session', 'hidden', 'from apiKey'],
    ['Idempotency-Key', 'hidden', 'from idempotencyKey'],
    ['content-type', 'hidden', 'by itself'],
    ['x-proxy', 'hidden\nx: y', 'x-proxy is not a valid header'],
    ['x proxy', 'hidden', 'x proxy is not a valid header'],
  ])('refuse %s without showing its value [security]', async (name, value, message) => {
    const headers = { [name]: value };
    const started = errorOf(Promise.resolve().then(() => clientOf({ headers })));
    for (const error of [await started, await errorOf(clientOf().me({ headers }))]) {
      expect(error).toBeInstanceOf(TypeError);
      expect(String(error)).toContain(message);
      expect(inspect(error)).not.toContain('hidden');
    }
    expect(api.got).toEqual([]);
  });
});

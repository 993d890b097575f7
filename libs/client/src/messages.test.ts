import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  failure,
  type ScriptedApi,
  silence,
  startScriptedApi,
  success,
} from '../check/scripted-api.ts';
import { Posthorn, type SendMessage, TimeoutError } from './index.ts';

let api: ScriptedApi;
let client: Posthorn;

beforeAll(async () => {
  api = await startScriptedApi();
  client = new Posthorn({ apiKey: 'phk_1', baseUrl: api.baseUrl });
});

beforeEach(() => {
  api.got.length = 0;
});

afterAll(() => api.close());

describe('a message', () => {
  test.each([['{"n":1.0,"b":2,"a":1e3,"b":"\\u00e9é"}'], [' {\n "__proto__": 1 }'], ['{}']])(
    'has the raw payload %j byte for byte',
    async (rawPayload) => {
      api.answerWith(success({}));
      await client.messages.send({ appId: 'app_1', eventType: 'order.paid', rawPayload });
      expect(api.got[0]?.body).toBe(
        `{"appId":"app_1","eventType":"order.paid","payload":${rawPayload}}`,
      );
    },
  );

  test('has a payload as JSON', async () => {
    api.answerWith(success({}));
    const payload: { id: number; at: Date } = { id: 17, at: new Date(0) };
    await client.messages.send({ webhookId: 'wh_1', payload });
    expect(api.got[0]?.body).toBe(
      '{"webhookId":"wh_1","payload":{"id":17,"at":"1970-01-01T00:00:00.000Z"}}',
    );
  });

  test.each([
    ['no object', '[1]'],
    ['not JSON', "{'a':1}"],
    ['more than one object, which would add fields', '{},"externalId":"forged"'],
    ['half a character', '{"a":"\ud800"}'],
  ])('refuses a raw payload that is %s', async (_what, rawPayload) => {
    const sent = client.messages.send({ appId: 'app_1', rawPayload });
    await expect(sent).rejects.toThrow(TypeError);
  });

  test('refuses both payloads, and none', async () => {
    for (const fields of [{}, { payload: {}, rawPayload: '{}' }]) {
      const message = { appId: 'app_1', ...fields } as SendMessage;
      const sent = client.messages.send(message);
      await expect(sent).rejects.toThrow('exactly one of payload and rawPayload');
    }
    expect(api.got).toEqual([]);
  });
});

describe('waitUntilFinal', () => {
  const withStatus = (status: string) => success({ id: 'msg_1', status });

  test('resolves with the message once no delivery is pending', async () => {
    api.answerWith(withStatus('pending'), withStatus('exhausted'));
    const message = await client.messages.waitUntilFinal('msg_1');
    expect(message.status).toBe('exhausted');
    expect(api.got.map(({ url }) => url)).toEqual(Array(2).fill('/api/v1/webhook-messages/msg_1'));
  });

  test.each([
    ['stays pending', withStatus('pending')],
    ['is not answered', silence],
    ['cannot be read for longer', failure(503, 'unavailable', { 'retry-after': '60' })],
  ])('rejects with a TimeoutError when the message %s', async (_what, step) => {
    api.answerWith(step);
    const waiting = client.messages.waitUntilFinal('msg_1', { timeoutMs: 400 });
    await expect(waiting).rejects.toThrow(TimeoutError);
  });

  test('rejects with the reason of its signal', async () => {
    const controller = new AbortController();
    const reason = new Error('stop');
    api.answerWith((response, got) => {
      withStatus('pending')(response, got);
      controller.abort(reason);
    });
    const { signal } = controller;
    await expect(client.messages.waitUntilFinal('msg_1', { signal })).rejects.toBe(reason);
  });
});

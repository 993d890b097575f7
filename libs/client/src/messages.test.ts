import { describe, expect, jest, test } from '@jest/globals';
import { failure, reset, silence, type Step, success } from '../check/scripted-api.ts';
import { startScriptedClient } from '../check/scripted-client.ts';
import { Posthorn, type SendMessage, TimeoutError } from './index.ts';

const { api, clientOf } = await startScriptedClient();
const client = clientOf();

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

describe('many messages', () => {
  interface SentMessage {
    idempotencyKey: string;
    payload: { n: number };
  }
  const messagesOf = ({ body }: { body: string }) =>
    (JSON.parse(body) as { messages: SentMessage[] }).messages;
  /** Answers a batch as the API does: the result of each message is that of its number. */
  const resultsOf =
    (resultOf: (n: number) => object = () => ({ status: 'accepted' })): Step =>
    (response, got) => {
      const results = messagesOf(got).map(({ payload: { n } }, index) => {
        return { index, messageId: `msg_${n}`, ...resultOf(n) };
      });
      success({ accepted: 0, replayed: 0, failed: 0, results })(response, got);
    };
  const numbered = (count: number, more: object = {}) =>
    Array.from({ length: count }, (_, n) => ({ appId: 'app_1', payload: { n, ...more } }));

  test('are sent in batches of 1,000 with a key each, and have their results in order', async () => {
    api.answerWith(resultsOf());
    const results = await client.messages.sendMany(numbered(2_100), { idempotencyKey: 'import' });
    expect(api.got.map((each) => messagesOf(each).length)).toEqual([1_000, 1_000, 100]);
    expect(api.got.map(({ url }) => url)).toEqual(Array(3).fill('/api/v1/webhook-messages/batch'));
    expect(results.map(({ index, messageId }) => [index, messageId])).toEqual(
      numbered(2_100).map((_, n) => [n, `msg_${n}`]),
    );
    expect(api.got.flatMap(messagesOf).map(({ idempotencyKey }) => idempotencyKey)).toEqual(
      numbered(2_100).map((_, n) => `import#${n}`),
    );
  });

  test('are at most 1 MiB together, counted in bytes', async () => {
    api.answerWith(resultsOf());
    await client.messages.sendMany(numbered(12, { text: 'é'.repeat(100_000) }));
    expect(api.got.map((each) => messagesOf(each).length)).toEqual([5, 5, 2]);
    for (const { body } of api.got) expect(Buffer.byteLength(body)).toBeLessThanOrEqual(1_048_576);
  });

  test('keep their own keys and raw payloads', async () => {
    api.answerWith(success({ results: [{}] }));
    const rawPayload = '{"n":1.0}';
    await client.messages.sendMany([{ webhookId: 'wh_1', rawPayload, idempotencyKey: 'own' }]);
    expect(api.got[0]?.body).toBe(
      '{"messages":[{"idempotencyKey":"own","webhookId":"wh_1","payload":{"n":1.0}}]}',
    );
  });

  test('have different keys of at most 255 characters, however long the key of the call is', async () => {
    api.answerWith(resultsOf());
    const keysOf = async (idempotencyKey: string): Promise<string[]> => {
      api.got.length = 0;
      await client.messages.sendMany(numbered(1_001), { idempotencyKey });
      return api.got.flatMap(messagesOf).map((message) => message.idempotencyKey);
    };
    const [first, second] = [`${'k'.repeat(254)}1`, `${'k'.repeat(254)}2`];
    const keys = [...(await keysOf(first)), ...(await keysOf(second))];
    expect(new Set(keys).size).toBe(2_002);
    expect(Math.max(...keys.map(({ length }) => length))).toBeLessThanOrEqual(255);
    expect(await keysOf(first)).toEqual(keys.slice(0, 1_001));
  });

  test('without a key have that of their place in the whole, also where it is null', async () => {
    api.answerWith(resultsOf());
    const messages = numbered(1_001).map((message) => ({ ...message, idempotencyKey: null }));
    await client.messages.sendMany(messages, { idempotencyKey: 'k' });
    expect(api.got.map((each) => messagesOf(each)[0]?.idempotencyKey)).toEqual(['k#0', 'k#1000']);
  });

  test('that could not be stored for the moment are sent again with the same keys', async () => {
    const failing = resultsOf((n) =>
      n % 2 === 0 ? { status: 'accepted' } : { status: 'failed', code: 'unavailable' },
    );
    const refusing = resultsOf((n) =>
      n === 1 ? { status: 'failed', code: 'not_found' } : { status: 'replayed' },
    );
    api.answerWith(failing, refusing);
    const results = await client.messages.sendMany(numbered(4), { idempotencyKey: 'k' });
    expect(results.map(({ status }) => status)).toEqual([
      ...['accepted', 'failed', 'accepted', 'replayed'],
    ]);
    const keys = api.got.map((each) => messagesOf(each).map((message) => message.idempotencyKey));
    expect(keys).toEqual([
      ['k#0', 'k#1', 'k#2', 'k#3'],
      ['k#1', 'k#3'],
    ]);
    expect(api.got[1]?.body).toContain(
      JSON.stringify({ idempotencyKey: 'k#1', appId: 'app_1' }).slice(1, -1),
    );
  });

  test('are not sent again more often than allowed', async () => {
    api.answerWith(resultsOf(() => ({ status: 'failed', code: 'unavailable' })));
    const results = await client.messages.sendMany(numbered(1), { maxRetries: 1 });
    expect(results).toMatchObject([{ status: 'failed', code: 'unavailable' }]);
    expect(api.got).toHaveLength(2);
  });

  test('are not sent again with a maxRetries of NaN', async () => {
    const failing = resultsOf(() => ({ status: 'failed', code: 'unavailable' }));
    api.answerWith(failing, resultsOf());
    const results = await client.messages.sendMany(numbered(1), { maxRetries: NaN });
    expect(results).toMatchObject([{ status: 'failed' }]);
  });

  test('wait for the next time with the signal of the client', async () => {
    const { signal } = new AbortController();
    const listen = jest.spyOn(signal, 'addEventListener');
    const limited = new Posthorn({ apiKey: 'phk_1', baseUrl: api.baseUrl, signal });
    api.answerWith(resultsOf(() => ({ status: 'failed', code: 'unavailable' })));
    await limited.messages.sendMany(numbered(1), { maxRetries: 1 });
    expect(api.got).toHaveLength(2);
    // Two requests, and the wait between them.
    expect(listen).toHaveBeenCalledTimes(3);
  });

  test('that are not valid are named by their place in the whole', async () => {
    const errors = [{ path: 'messages.5.payload', message: 'must be a JSON object' }];
    api.answerWith(resultsOf(), failure(400, 'invalid_request', {}, { errors }));
    const sent = client.messages.sendMany(numbered(1_010), { idempotencyKey: 'k' });
    await expect(sent).rejects.toMatchObject({
      name: 'ValidationError',
      errors: [{ path: 'messages.1005.payload' }],
      idempotencyKey: 'k',
      results: numbered(1_010).map((_, n) => (n < 1_000 ? { index: n, status: 'accepted' } : null)),
    });
  });

  test.each([
    ['the key', failure(401, 'unauthorized'), 'AuthenticationError'],
    ['one message', failure(400, 'invalid_json'), 'BadRequestError'],
    ['the connection', reset, 'ConnectionError'],
  ])('keep their results when a repeat fails for %s', async (_what, step, name) => {
    const failing = resultsOf((n) =>
      n === 1 ? { status: 'failed', code: 'unavailable' } : { status: 'accepted' },
    );
    api.answerWith(failing, step);
    const sent = client.messages.sendMany(numbered(3), { maxRetries: 1 });
    await expect(sent).rejects.toMatchObject({
      name,
      results: [
        { index: 0, status: 'accepted', messageId: 'msg_0' },
        { index: 1, status: 'failed', code: 'unavailable' },
        { index: 2, status: 'accepted', messageId: 'msg_2' },
      ],
    });
  });

  test('are an error with the results there are, when an answer lacks some', async () => {
    api.answerWith(success({ results: [{ status: 'accepted' }] }));
    const sent = client.messages.sendMany(numbered(2));
    await expect(sent).rejects.toMatchObject({
      name: 'PosthornError',
      results: [{ index: 0, status: 'accepted' }, null],
    });
  });

  test('are none without a request', async () => {
    expect(await client.messages.sendMany([])).toEqual([]);
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

  test('requests nothing with a signal that is aborted already', async () => {
    api.answerWith(withStatus('pending'));
    const reason = new Error('stop');
    const waiting = client.messages.waitUntilFinal('msg_1', { signal: AbortSignal.abort(reason) });
    await expect(waiting).rejects.toBe(reason);
    expect(api.got).toEqual([]);
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

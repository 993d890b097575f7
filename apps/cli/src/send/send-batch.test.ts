import { describe, expect, it } from '@jest/globals';
import { ConnectionError, Posthorn, type SendManyMessage } from '@posthorn/client';
import { RefusedItem } from './send-all.ts';
import { sendBatch } from './send-batch.ts';

type Answer = (bodies: string[]) => Response;

/** Sends payloads with the numbers 0, 1, … to an API that gives these answers. */
async function send(count: number, ...answers: Answer[]) {
  const requests: string[][] = [];
  const api = new Posthorn({
    apiKey: 'phk_1',
    baseUrl: 'http://127.0.0.1:1',
    maxRetries: 0,
    fetch: (_url, { body }) => {
      const text = body as string;
      const payloads = [...text.matchAll(/"payload":(\{[^}]*\})/g)].map(([, each = '']) => each);
      requests.push(payloads);
      const answer = answers.shift();
      if (!answer) return Promise.reject(new Error('no network'));
      return Promise.resolve(answer(payloads));
    },
  });
  const messages = Array.from({ length: count }, (_, n): SendManyMessage => {
    return { appId: 'app_1', rawPayload: `{"n":${n}.0}`, idempotencyKey: `k-${n}` };
  });
  return { requests, outcomes: await sendBatch(api, messages, { maxRetries: 0 }) };
}

const accepted: Answer = (payloads) => {
  const results = payloads.map((payload) => ({
    status: 'accepted',
    messageId: `msg_${payload}`,
    deliveries: 2,
  }));
  return Response.json({ success: true, data: { results } });
};

const refused =
  (status: number, code: string, more: object = {}): Answer =>
  () =>
    Response.json({ success: false, code, message: `It is ${code}.`, ...more }, { status });

const result = (n: number): object => ({
  result: { status: 'accepted', messageId: `msg_{"n":${n}.0}`, deliveries: 2 },
});

describe('a batch', () => {
  it('is one request with payloads byte for byte, and has an outcome for each message', async () => {
    const { requests, outcomes } = await send(2, (payloads) => {
      const [first] = payloads;
      const failed = { status: 'failed', code: 'not_found', message: 'There is no such app.' };
      const replayed = { status: 'replayed', messageId: `msg_${first ?? ''}`, deliveries: 0 };
      return Response.json({ success: true, data: { results: [replayed, failed] } });
    });
    expect(requests).toEqual([['{"n":0.0}', '{"n":1.0}']]);
    expect(outcomes).toEqual([
      { result: { status: 'replayed', messageId: 'msg_{"n":0.0}', deliveries: 0 } },
      { error: new RefusedItem('There is no such app.', 'not_found') },
    ]);
  });

  it('is sent without the messages that are not valid, which are refused by name', async () => {
    const errors = [
      { path: 'messages.1.payload', message: 'has more than 262144 bytes' },
      { path: 'messages.1.tags', message: 'is not a list' },
      { path: 'messages.3.payload', message: 'is too deep' },
    ];
    const broken = refused(400, 'invalid_json', { message: 'It is wrong in messages.0.' });
    const { requests, outcomes } = await send(
      5,
      refused(400, 'invalid_request', { errors }),
      broken,
      accepted,
    );
    expect(requests.map((payloads) => payloads.join())).toEqual([
      '{"n":0.0},{"n":1.0},{"n":2.0},{"n":3.0},{"n":4.0}',
      '{"n":0.0},{"n":2.0},{"n":4.0}',
      '{"n":2.0},{"n":4.0}',
    ]);
    const problems = 'payload: has more than 262144 bytes; tags: is not a list';
    expect(outcomes).toEqual([
      { error: new RefusedItem('It is wrong', 'invalid_json') },
      { error: new RefusedItem(problems, 'invalid_request') },
      result(2),
      { error: new RefusedItem('payload: is too deep', 'invalid_request') },
      result(4),
    ]);
  });

  it.each([
    ['the key', refused(401, 'unauthorized'), { status: 401 }],
    ['a size without a name', refused(413, 'body_too_large'), { status: 413 }],
  ])('that is refused for %s fails as a whole', async (_what, answer, error) => {
    const { requests, outcomes } = await send(2, answer);
    expect(requests).toHaveLength(1);
    expect(outcomes).toMatchObject([{ error }, { error }]);
    const errors = outcomes.map((outcome) => 'error' in outcome && outcome.error);
    expect(new Set(errors).size).toBe(1);
  });

  it('keeps what the first of its requests has stored when the second one fails', async () => {
    const { requests, outcomes } = await send(1_001, accepted);
    expect(requests.map(({ length }) => length)).toEqual([1_000, 1]);
    expect(outcomes.slice(998, 1_000)).toEqual([result(998), result(999)]);
    expect(outcomes[1_000]).toEqual({ error: expect.any(ConnectionError) });
  });
});

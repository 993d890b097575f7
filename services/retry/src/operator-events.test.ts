import { beforeEach, expect, test } from '@jest/globals';
import { encodeOperatorEvent, type OperatorEvent } from '@posthorn/domain/operator-events.ts';
import { Webhook } from 'standardwebhooks';
import { sampleRecord } from '../../../test/support/samples/sample-record.ts';
import { collectLogLines, type LogLines } from '../../../test/support/sources/log-lines.ts';
import { createOperatorRequest, createSendOperatorEvent } from './operator-events.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

const event: OperatorEvent = {
  id: 'oev_1',
  type: 'delivery.exhausted',
  companyId: 'comp_a',
  webhookId: 'wh_1',
  detail: 'attempt 7 ended timeout',
  count: 2,
  firstAtMs: 1_000,
  lastAtMs: 2_000,
};

let posts: { url: string; headers: Record<string, string>; body: Buffer }[];
/** What the endpoint answers, one after the other; an error is no answer. */
let answers: (number | Error)[];
let waits: number[];
let results: string[];
let deadLetters: string[];
let log: LogLines;

beforeEach(() => {
  [posts, answers, waits, results, deadLetters] = [[], [204], [], [], []];
  log = collectLogLines();
});

const STANDARD = createOperatorRequest({
  OPERATOR_WEBHOOK_FORMAT: 'standard',
  OPERATOR_WEBHOOK_SECRET: SECRET,
  PUBLIC_URL: undefined,
});

const send = (value = encodeOperatorEvent(event), makeRequest = STANDARD): Promise<void> =>
  createSendOperatorEvent({
    url: 'https://ops.example/hook/T00/secret-of-the-path',
    makeRequest,
    stopping: new AbortController().signal,
    post(url, headers, body) {
      posts.push({ url, headers, body });
      const answer = answers.shift() ?? 500;
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    pause: (ms) => Promise.resolve(void waits.push(ms)),
    deadLetters: { put: (_, reason) => Promise.resolve(void deadLetters.push(reason)) },
    onResult: (result) => void results.push(result),
    logger: log.logger,
    nowMs: Date.now,
  })(sampleRecord({}, { value }));

test('an event is sent once, with a signature that a Standard Webhooks library verifies', async () => {
  await send();
  const [post] = posts;
  const payload = new Webhook(SECRET).verify(String(post?.body), post?.headers ?? {});
  expect(payload).toMatchObject({
    type: 'delivery.exhausted',
    data: { webhookId: 'wh_1', count: 2 },
  });
  expect(post?.headers['webhook-id']).toBe('oev_1');
  expect([posts.length, results, waits]).toEqual([1, ['delivered'], []]);
});

test('an endpoint that fails is tried again later, with the same id', async () => {
  answers = [new Error('connect refused'), 503, 200];
  await send();
  expect(waits).toEqual([1_000, 10_000]);
  expect(new Set(posts.map(({ headers }) => headers['webhook-id']))).toEqual(new Set(['oev_1']));
  expect(results).toEqual(['delivered']);
  expect(log.lines).toMatchObject([{ problem: 'connect refused' }, { problem: 'status 503' }]);
});

test('an event is given up after the last wait, so that it does not stand in front of others', async () => {
  answers = [500, 302, 404, 301, 503];
  await send();
  expect([waits, results]).toEqual([[1_000, 10_000, 60_000, 300_000], ['failed']]);
});

test.each(['slack', 'teams'] as const)(
  'an event for %s has no signature and needs no secret, and its URL is not logged',
  async (format) => {
    answers = [new Error('connect refused'), 503, 200];
    const settings = { OPERATOR_WEBHOOK_SECRET: undefined, PUBLIC_URL: 'https://a.example' };
    await send(undefined, createOperatorRequest({ OPERATOR_WEBHOOK_FORMAT: format, ...settings }));
    const [post] = posts;
    expect(post?.headers).toEqual({ 'content-type': 'application/json' });
    expect(String(post?.body)).toContain('https://a.example/dashboard/webhooks/wh_1');
    expect(results).toEqual(['delivered']);
    expect(JSON.stringify(log.lines)).not.toContain('secret-of-the-path');
  },
);

test('the standard format does not start without a secret', () => {
  const settings = { OPERATOR_WEBHOOK_SECRET: undefined, PUBLIC_URL: undefined };
  expect(() => createOperatorRequest({ OPERATOR_WEBHOOK_FORMAT: 'standard', ...settings })).toThrow(
    'OPERATOR_WEBHOOK_SECRET is required',
  );
});

test('what is no event becomes a dead letter', async () => {
  await send(Buffer.from('{}'));
  expect([posts, deadLetters]).toEqual([[], ['unreadable_record']]);
});

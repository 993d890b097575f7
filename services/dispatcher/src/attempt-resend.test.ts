import { beforeEach, describe, expect, test } from '@jest/globals';
import { signerOf } from '@posthorn/domain/delivery-headers.ts';
import { encodeMessageCreated, encodeRetryDue } from '@posthorn/domain/records.ts';
import { sampleWebhook } from '../../../test/support/sample-webhook.ts';
import { createAttemptDelivery, type AttemptDeps } from './attempt-delivery.ts';
import { createOriginSlots } from './origin-slots.ts';
import type { Settled } from './settle-delivery.ts';

const REF = {
  ...{ messageId: 'msg_01m7y9sd1vcyc08g7bpf97f5mm', webhookId: 'wh_1', companyId: 'comp_a' },
  ...{ appId: null, createdAtMs: 1_000 },
};

let isWanted: boolean;
let questions: number;
let loads: number;
let sent: number[];
let settled: Settled[];
let found: Awaited<ReturnType<AttemptDeps['loadWebhook']>>;

beforeEach(() => {
  [isWanted, questions, loads, sent, settled] = [true, 0, 0, [], []];
  const webhook = sampleWebhook(1);
  found = { webhook, signer: signerOf(webhook), origin: 'https://example.com', path: '/' };
});

const attempt = createAttemptDelivery({
  topics: { messageCreated: 'created' },
  loadWebhook: () => {
    loads += 1;
    return Promise.resolve(found);
  },
  loadPayload: () => Promise.resolve(Buffer.from('{}')),
  send: ({ attemptNumber: number, trigger }) => {
    sent.push(number);
    const answer = { outcome: 'success' as const, statusCode: 200, response: null };
    const times = { startedAtMs: 1, durationMs: 1 };
    return Promise.resolve({
      id: 'att',
      number,
      trigger,
      ...answer,
      responseHeaders: [],
      ...times,
    });
  },
  slots: createOriginSlots(10),
  settle: (each) => {
    settled.push(each);
    return Promise.resolve();
  },
  pace: () => Promise.resolve(true),
  resendOnce: (_due, work) => {
    questions += 1;
    return isWanted ? work() : Promise.resolve();
  },
  nowMs: () => 1,
  deadLetters: { put: () => Promise.reject(new Error('not used here')) },
});

const record = (topic: string, value: Buffer) =>
  attempt({ topic, partition: 0, offset: 0, key: 'wh_1', value, headers: {} });
const due = (trigger: 'retry' | 'resend') =>
  record('due', encodeRetryDue({ ...REF, attemptNumber: 8, dueAtMs: 1, trigger }));

describe('a resend that is due', () => {
  test('is sent with the number that was asked for, and settled as a resend', async () => {
    await due('resend');
    expect(sent).toEqual([8]);
    expect(settled).toMatchObject([{ due: { trigger: 'resend' }, attempt: { number: 8 } }]);
  });

  test('that was made already or is not asked for is dropped without a trace', async () => {
    isWanted = false;
    await due('resend');
    expect([loads, sent, settled]).toEqual([0, [], []]);
  });

  test.each([
    ['webhook_deleted', () => null],
    [
      'webhook_disabled',
      () => found && { ...found, webhook: sampleWebhook(1, { disabled: true }) },
    ],
  ])('is settled without a request: %s', async (reason, webhook) => {
    found = webhook();
    await due('resend');
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ due: { trigger: 'resend', attemptNumber: 8 }, reason }]);
  });
});

test('what was cancelled when it was accepted is never sent, also when the webhook is enabled by now', async () => {
  await record('created', encodeMessageCreated({ ...REF, isCancelled: true }, Buffer.from('{}')));
  expect([loads, sent]).toEqual([0, []]);
  expect(settled).toMatchObject([{ reason: 'webhook_disabled' }]);
});

test('nobody is asked about a first attempt or a retry', async () => {
  await record('created', encodeMessageCreated(REF, Buffer.from('{}')));
  await due('retry');
  expect([questions, sent]).toEqual([0, [1, 8]]);
});

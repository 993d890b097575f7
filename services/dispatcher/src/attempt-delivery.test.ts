import { beforeEach, describe, expect, it } from '@jest/globals';
import { signerOf } from '@posthorn/domain/delivery-headers.ts';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import { encodeMessageCreated, encodeRetryDue } from '@posthorn/domain/records.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { SealedValueError } from '@posthorn/platform/vault.ts';
import { sampleWebhook } from '../../../test/support/sample-webhook.ts';
import { createAttemptDelivery } from './attempt-delivery.ts';
import type { LoadWebhook } from './load-webhook.ts';
import { createOriginSlots } from './origin-slots.ts';
import type { Settled } from './settle-delivery.ts';

const NOW_MS = 1_700_000_000_000;
const REF = {
  messageId: 'msg_01m7y9sd1vcyc08g7bpf97f5mm',
  webhookId: 'wh_1',
  companyId: 'comp_a',
  appId: 'app_1',
  createdAtMs: 1_000,
};

let settled: Settled[] = [];
let sent = 0;

beforeEach(() => {
  [settled, sent] = [[], 0];
});

function attemptWith(found: Awaited<ReturnType<LoadWebhook>>) {
  return createAttemptDelivery({
    topics: { messageCreated: 'created' },
    loadWebhook: () => Promise.resolve(found),
    loadPayload: () => Promise.resolve(Buffer.from('{}')),
    send: ({ attemptNumber: number, trigger }) => {
      sent += 1;
      const answer = { outcome: 'success' as const, statusCode: 200, response: null };
      const id = `att_${number}`;
      const times = { startedAtMs: NOW_MS, durationMs: 1 };
      return Promise.resolve({ id, number, trigger, ...answer, responseHeaders: [], ...times });
    },
    slots: createOriginSlots(10),
    settle: (each) => {
      settled.push(each);
      return Promise.resolve();
    },
    deadLetters: { put: () => Promise.reject(new Error('not used here')) },
    pace: () => Promise.resolve(true),
    resendOnce: (_due, work) => work(),
    nowMs: () => NOW_MS,
  });
}

function record(topic: string, value: Buffer): LogRecord {
  const headers = { requestId: 'request-1' };
  return { topic, partition: 0, offset: 0, key: 'wh_1', value, headers };
}

const created = record('created', encodeMessageCreated(REF, Buffer.from('{}')));
const retry = record('due', encodeRetryDue({ ...REF, attemptNumber: 3, dueAtMs: NOW_MS }));
const problem = new SealedValueError('secret of wh_1 is not a sealed value', null);

describe('a due attempt', () => {
  it('is sent and settled with what came of it', async () => {
    const webhook = sampleWebhook(1);
    const found = { webhook, signer: signerOf(webhook), origin: 'https://example.com', path: '/' };
    await attemptWith(found)(created);
    expect(sent).toBe(1);
    expect(settled).toMatchObject([
      { attempt: { outcome: 'success' }, headers: { requestId: 'request-1' } },
    ]);
  });

  it('fails without a request when the webhook does not open, and its schedule goes on', async () => {
    await attemptWith({ id: 'wh_1', disabled: false, eventTypes: [], problem })(retry);
    expect(sent).toBe(0);
    const id = attemptIdOf(deliveryIdOf(REF.messageId, REF.webhookId), 3);
    expect(settled).toMatchObject([
      {
        attempt: {
          ...{ id, number: 3, trigger: 'retry', outcome: 'aborted', statusCode: null },
          ...{ response: null, responseHeaders: [], startedAtMs: NOW_MS, durationMs: 0 },
        },
        headers: { requestId: 'request-1' },
      },
    ]);
  });

  it.each([
    ['webhook_deleted', null],
    ['webhook_disabled', { id: 'wh_1', disabled: true, eventTypes: [], problem }],
  ])('is cancelled without a request: %s', async (reason, found) => {
    await attemptWith(found)(created);
    expect(sent).toBe(0);
    expect(settled).toMatchObject([{ reason }]);
  });
});

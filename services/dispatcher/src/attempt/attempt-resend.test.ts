import { describe, expect, test } from '@jest/globals';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import {
  type AttemptHarnessOptions,
  createAttemptHarness,
  FOUND,
} from '../../../../test/support/isolation/attempt-harness.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';

const REF = refOf(sampleDue());

async function read(around: AttemptHarnessOptions, topic: string, value: Buffer) {
  const steps = createAttemptHarness(around);
  await steps.attempt(sampleRecord({}, { topic, value }));
  return steps;
}

const due = (trigger: 'retry' | 'resend', around: AttemptHarnessOptions = {}) =>
  read(around, 'due', encodeRetryDue({ ...REF, attemptNumber: 8, dueAtMs: 1, trigger }));

describe('a resend that is due', () => {
  test('is sent with the requested attempt number and settled as a resend', async () => {
    const { sent, settled, settledResends } = await due('resend');
    expect([sent, settled]).toEqual([[8], []]);
    expect(settledResends).toMatchObject([{ kind: 'attempted', attempt: { number: 8 } }]);
  });

  test('is dropped without a trace if it was made before or is no longer requested', async () => {
    const { loads, sent, settledResends } = await due('resend', { remaining: { kind: 'drop' } });
    expect([loads.webhook, sent, settledResends]).toEqual([0, [], []]);
  });

  test.each([
    ['webhook_deleted', null],
    ['webhook_disabled', { ...FOUND, webhook: sampleWebhook(1, { disabled: true }) }],
  ])('is settled without a request: %s', async (reason, webhook) => {
    const loadWebhook = () => Promise.resolve(webhook);
    const { sent, settledResends } = await due('resend', { loadWebhook });
    expect(sent).toEqual([]);
    expect(settledResends).toMatchObject([
      { kind: 'cancelled', due: { attemptNumber: 8 }, reason },
    ]);
  });
});

describe('a delivery that was cancelled at acceptance', () => {
  const value = encodeMessageCreated({ ...REF, isCancelled: true }, Buffer.from('{}'));
  const deleted = () => Promise.resolve(null);

  test.each([
    ['by now its webhook is enabled', {}],
    ['by now its webhook is deleted', { loadWebhook: deleted }],
    ['its company is suspended', { isCompanySuspended: () => true }],
  ])('is recorded as such and never sent: %s', async (_when, options) => {
    const { sent, settled } = await read(options, 'created', value);
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ kind: 'cancelled', reason: 'webhook_disabled' }]);
  });

  test('is not recorded once its company is removed', async () => {
    const options = { loadWebhook: deleted, isCompanyRemoved: true };
    const { sent, settled } = await read(options, 'created', value);
    expect([sent, settled]).toEqual([[], []]);
  });

  test('of a webhook that is stored costs no look-up of its company', async () => {
    const { loads, settled } = await read({}, 'created', value);
    expect([loads.company, settled.length]).toEqual([0, 1]);
  });
});

test('a first attempt and a retry are settled as attempts of their delivery', async () => {
  const first = await read({}, 'created', encodeMessageCreated(REF, Buffer.from('{}')));
  const retry = await due('retry');
  expect([first.sent, retry.sent]).toEqual([[1], [8]]);
  expect([first.settledResends, retry.settledResends]).toEqual([[], []]);
  expect([...first.settled, ...retry.settled]).toMatchObject([
    { kind: 'attempted', attempt: { number: 1 } },
    { kind: 'attempted', attempt: { number: 8 } },
  ]);
});

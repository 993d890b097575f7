import { describe, expect, test } from '@jest/globals';
import { encodeMessageCreated, encodeRetryDue, refOf } from '@posthorn/domain/records/records.ts';
import {
  createAttemptSteps,
  FOUND,
  type Around,
} from '../../../test/support/isolation/attempt-steps.ts';
import { sampleDue, sampleRecord } from '../../../test/support/samples/sample-record.ts';
import { sampleWebhook } from '../../../test/support/samples/sample-webhook.ts';

const REF = refOf(sampleDue());

async function read(around: Around, topic: string, value: Buffer) {
  const steps = createAttemptSteps(around);
  await steps.attempt(sampleRecord({}, { topic, value }));
  return steps;
}

const due = (trigger: 'retry' | 'resend', around: Around = {}) =>
  read(around, 'due', encodeRetryDue({ ...REF, attemptNumber: 8, dueAtMs: 1, trigger }));

describe('a resend that is due', () => {
  test('is sent with the number that was asked for, and settled as a resend', async () => {
    const { sent, settled } = await due('resend');
    expect(sent).toEqual([8]);
    expect(settled).toMatchObject([{ due: { trigger: 'resend' }, attempt: { number: 8 } }]);
  });

  test('that was made already or is not asked for is dropped without a trace', async () => {
    const { asked, sent, settled } = await due('resend', { isResendWanted: () => false });
    expect([asked.webhook, sent, settled]).toEqual([0, [], []]);
  });

  test.each([
    ['webhook_deleted', null],
    ['webhook_disabled', { ...FOUND, webhook: sampleWebhook(1, { disabled: true }) }],
  ])('is settled without a request: %s', async (reason, webhook) => {
    const loadWebhook = () => Promise.resolve(webhook);
    const { sent, settled } = await due('resend', { loadWebhook });
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ due: { trigger: 'resend', attemptNumber: 8 }, reason }]);
  });
});

test('what was cancelled when it was accepted is never sent, also when the webhook is enabled by now', async () => {
  const value = encodeMessageCreated({ ...REF, isCancelled: true }, Buffer.from('{}'));
  const { asked, sent, settled } = await read({}, 'created', value);
  expect([asked.webhook, sent]).toEqual([0, []]);
  expect(settled).toMatchObject([{ reason: 'webhook_disabled' }]);
});

test('nobody is asked whether a first attempt or a retry is wanted', async () => {
  const first = await read({}, 'created', encodeMessageCreated(REF, Buffer.from('{}')));
  const retry = await due('retry');
  expect([first.asked.resend, retry.asked.resend]).toEqual([0, 0]);
  expect([first.sent, retry.sent]).toEqual([[1], [8]]);
});

import { describe, expect, it } from '@jest/globals';
import { type Attempt, outcomeOfStatus, refOf } from '@posthorn/domain/delivery/delivery.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import {
  type AttemptHarnessOptions,
  createAttemptHarness,
  finding,
  FOUND,
  NOW_MS,
  SEALED,
  sendSuccessfully,
} from '../../../../test/support/isolation/attempt-harness.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import { abortedAttempt } from './settled-attempt.ts';
import type { SendWebhook } from '../sending/send-webhook.ts';

const REF = { ...refOf(sampleDue()), createdAtMs: NOW_MS };
const RETRY = encodeRetryDue({ ...REF, attemptNumber: 3, dueAtMs: NOW_MS });
const retry = sampleRecord({}, { topic: 'due', value: RETRY });

describe('an attempt that its webhook or its endpoint makes the last one', () => {
  const answering =
    (statusCode: number, control?: string): SendWebhook =>
    async (...args) => ({
      ...(await sendSuccessfully(...args)),
      outcome: outcomeOfStatus(statusCode),
      statusCode,
      responseHeaders: control === undefined ? [] : [{ key: 'webhook-delivery', value: control }],
    });
  const having = (settings: Partial<Webhook>, send: SendWebhook): AttemptHarnessOptions => ({
    ...finding({ ...FOUND, webhook: { ...FOUND.webhook, ...settings } }),
    send,
  });
  const resend = sampleRecord(
    {},
    {
      topic: 'due',
      value: encodeRetryDue({ ...REF, attemptNumber: 9, dueAtMs: 1, trigger: 'resend' }),
    },
  );

  it.each<[string, Partial<Webhook>, SendWebhook]>([
    ['gone', { onGone: 'disable' }, answering(410)],
    ['aborted', { obeyControlHeaders: true }, answering(500, 'abort-message')],
    ['not_retryable', { finalStatusCodes: [400, 422] }, answering(422)],
    ['max_attempts', { maxAttempts: 3 }, answering(500)],
  ])('is settled so: %s', async (ending, settings, send) => {
    const { attempt, settled } = createAttemptHarness(having(settings, send));
    await attempt(retry);
    expect(settled).toMatchObject([{ attempt: { number: 3, ending }, cancelReason: null }]);
  });

  it('is settled so although the webhook is disabled by then', async () => {
    let lookups = 0;
    const { attempt, settled, disabledFor } = createAttemptHarness({
      send: answering(410),
      loadWebhook() {
        lookups += 1;
        const webhook = { ...FOUND.webhook, onGone: 'disable' as const, disabled: lookups > 2 };
        return Promise.resolve({ ...FOUND, webhook });
      },
    });
    await attempt(retry);
    expect(settled).toMatchObject([{ attempt: { ending: 'gone' }, cancelReason: null }]);
    expect(disabledFor).toEqual(['gone']);
  });

  it.each<[string, Partial<Webhook>, SendWebhook, LogRecord]>([
    ['gone', { onGone: 'disable' }, answering(410), resend],
    ['control_header', { obeyControlHeaders: true }, answering(500, 'disable'), retry],
    ['control_header', { obeyControlHeaders: true }, answering(200, 'disable'), retry],
  ])('disables the webhook when it is told so: %s', async (reason, settings, send, record) => {
    const { attempt, settled, settledResends, disabledFor } = createAttemptHarness(
      having(settings, send),
    );
    await attempt(record);
    expect(disabledFor).toEqual([reason]);
    const [made] = [...settled, ...settledResends];
    expect(made).toHaveProperty('attempt');
    expect(made).not.toHaveProperty('attempt.ending');
  });

  it.each<[number, string]>([
    [410, ''],
    [422, ''],
    [500, 'disable'],
    [500, 'abort-message'],
  ])(
    'is an attempt like any other for a webhook with the defaults: %s %s',
    async (statusCode, control) => {
      const { attempt, settled, disabledFor } = createAttemptHarness({
        send: answering(statusCode, control),
      });
      await attempt(retry);
      expect(disabledFor).toEqual([]);
      expect(settled[0]).not.toHaveProperty('attempt.ending');
    },
  );

  it('is one without a request too, when the webhook allows no more', async () => {
    const { attempt, settled } = createAttemptHarness(finding({ ...SEALED, maxAttempts: 3 }));
    await attempt(retry);
    expect(settled).toMatchObject([{ attempt: { outcome: 'aborted', ending: 'max_attempts' } }]);
  });

  it('is published as such when it was recorded before', async () => {
    const recorded: Attempt = {
      ...abortedAttempt({ ...sampleDue(), attemptNumber: 3 }, NOW_MS),
      ending: 'gone',
    };
    const { attempt, settled, sent } = createAttemptHarness({
      remaining: { kind: 'publish_failure', attempt: recorded },
    });
    await attempt(sampleRecord({}, { topic: 'due', value: RETRY, isInherited: true }));
    expect([sent, settled]).toMatchObject([
      [],
      [{ attempt: { ending: 'gone' }, isRecorded: true }],
    ]);
  });
});

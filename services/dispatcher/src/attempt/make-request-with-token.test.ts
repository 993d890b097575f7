import { describe, expect, it } from '@jest/globals';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { TURN_AT_HEADER } from '@posthorn/domain/records/record-headers.ts';
import { encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import type { TokenAnswer } from '@posthorn/domain/request/access-token.ts';
import { signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import {
  type AttemptHarnessOptions,
  createAttemptHarness,
  FOUND,
  NOW_MS,
  sendSuccessfully,
} from '../../../../test/support/isolation/attempt-harness.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import { OAUTH2, sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import type { SharedAnswer } from '../sending/access-tokens.ts';
import type { SendWebhook } from '../sending/send-webhook.ts';

const webhook = sampleWebhook(1, {
  rateLimitPerSecond: null,
  authMethod: OAUTH2,
});
const found = { ...FOUND, webhook, signer: signerOf(webhook) };
const created = sampleRecord(
  {},
  {
    topic: 'created',
    value: encodeMessageCreated({ ...refOf(sampleDue()), createdAtMs: NOW_MS }, Buffer.from('{}')),
  },
);
const TOKEN: TokenAnswer = { kind: 'token', value: 't1', usableForMs: 60_000 };

/** Makes an attempt whose token server answers with this; null when the egress proxy fails. */
async function attemptWith(
  answer: SharedAnswer['answer'] | null,
  options: AttemptHarnessOptions = {},
) {
  let refused = 0;
  const used: (string | undefined)[] = [];
  const harness = createAttemptHarness({
    loadWebhook: () => Promise.resolve(found),
    tokens: { get: () => Promise.resolve(answer && { answer, refuse: () => void (refused += 1) }) },
    ...options,
    send: (due, payload, to, sentWith) => {
      used.push(sentWith?.accessToken);
      return (options.send ?? sendSuccessfully)(due, payload, to, sentWith);
    },
  });
  await harness.attempt(created);
  return { ...harness, used, refused };
}

describe('an attempt to a webhook with OAuth 2.0 [security]', () => {
  it('is sent with the token', async () => {
    const { used, settled, refused } = await attemptWith(TOKEN);
    expect(used).toEqual(['t1']);
    expect(settled).toMatchObject([{ attempt: { outcome: 'success' } }]);
    expect(refused).toBe(0);
  });

  it('refuses its token, and is not repeated, when the endpoint answers 401', async () => {
    const send: SendWebhook = async (...args) => ({
      ...(await sendSuccessfully(...args)),
      outcome: 'http_4xx' as const,
      statusCode: 401,
    });
    const { used, settled, refused } = await attemptWith(TOKEN, { send });
    expect([used, refused]).toEqual([['t1'], 1]);
    expect(settled).toMatchObject([{ attempt: { outcome: 'http_4xx', statusCode: 401 } }]);
  });

  it('fails without a request when there is no token, with the reason', async () => {
    const failureReason = 'the token server answered 503';
    const { sent, settled } = await attemptWith({ kind: 'failed', reason: failureReason });
    expect(sent).toEqual([]);
    const nothing = { statusCode: null, response: null, responseHeaders: [], durationMs: 0 };
    expect(settled).toMatchObject([
      { attempt: { outcome: 'token_failed', failureReason, number: 1, ...nothing } },
    ]);
  });

  it('tells the circuit nothing when there is no token, and all of it otherwise', async () => {
    const reports: unknown[] = [];
    const options: AttemptHarnessOptions = { onReport: (report) => reports.push(report) };
    await attemptWith({ kind: 'failed', reason: 'no answer' }, options);
    await attemptWith(null, options);
    await attemptWith(TOKEN, options);
    expect(reports).toMatchObject([null, null, { outcome: 'success' }]);
  });

  it('is deferred when the egress proxy failed the token request', async () => {
    const { sent, settled, deferred } = await attemptWith(null);
    expect([sent, settled, deferred]).toEqual([[], [], ['proxy']]);
  });

  it('is deferred to its reservation when too many token requests go to one host', async () => {
    const reservedAtMs = NOW_MS + 5_100;
    const { sent, settled, deferred, published } = await attemptWith({
      kind: 'later',
      reservedAtMs,
    });
    expect([sent, settled, deferred]).toEqual([[], [], ['host']]);
    expect(published[0]?.headers).toMatchObject({ [TURN_AT_HEADER]: String(reservedAtMs) });
  });

  it('is cancelled when its webhook was disabled while it waited for the token', async () => {
    let isDisabled = false;
    const { sent, settled } = await attemptWith(TOKEN, {
      loadWebhook: () =>
        Promise.resolve({ ...found, webhook: { ...webhook, disabled: isDisabled } }),
      tokens: {
        get() {
          isDisabled = true;
          return Promise.resolve({ answer: TOKEN, refuse: () => undefined });
        },
      },
    });
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ reason: 'webhook_disabled' }]);
  });

  it('starts over when its webhook was changed while it waited for the token', async () => {
    let changes = 0;
    const asked: number[] = [];
    const { sent } = await attemptWith(TOKEN, {
      loadWebhook: () =>
        Promise.resolve({ ...found, webhook: { ...webhook, updatedAtMs: 2_000 + changes } }),
      tokens: {
        get() {
          changes = 1;
          asked.push(changes);
          return Promise.resolve({ answer: TOKEN, refuse: () => undefined });
        },
      },
    });
    expect([sent, asked]).toEqual([[1], [1, 1]]);
  });

  it('is claimed again when its process was suspended while it waited for the token', async () => {
    let clockMs = 0;
    const { sent, loads } = await attemptWith(TOKEN, {
      leaseClockMs: () => clockMs,
      remaining: { kind: 'drop' },
      tokens: {
        get() {
          clockMs += 10_000;
          return Promise.resolve({ answer: TOKEN, refuse: () => undefined });
        },
      },
    });
    expect([sent, loads.recorded]).toEqual([[], 1]);
  });
});

import { expect, it } from '@jest/globals';
import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import { recordedSpans } from '../../../../test/support/samples/recorded-spans.ts';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';
import { abortedAttempt } from './settled-attempt.ts';
import type { SendWebhook } from '../sending/send-webhook.ts';
import type { Settled, SettledAttempt } from '../settle.ts';
import { createTraceAttempts } from './trace-attempts.ts';
import type { LoadedWebhook } from '../webhooks.ts';

const PARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
const UNSAMPLED = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`;
const WEBHOOK = {} as LoadedWebhook;
const PAYLOAD = Buffer.from('{}');

const due = sampleDue();
const attempt: Attempt = {
  ...abortedAttempt(due, 1_000),
  outcome: 'http_5xx',
  statusCode: 500,
  durationMs: 40,
};

function settledOf(changed: Partial<SettledAttempt> = {}): SettledAttempt {
  return {
    kind: 'attempted',
    due,
    attempt,
    appId: 'app_1',
    payloadBytes: 2,
    headers: { traceparent: PARENT },
    cancelReason: null,
    isRecorded: false,
    ...changed,
  };
}

function open(answer: Attempt | null = attempt) {
  const spans = recordedSpans();
  const given: (string | undefined)[] = [];
  const settled: Settled[] = [];
  const traces = createTraceAttempts(spans, () => 2_000);
  const send: SendWebhook = traces.send((_due, _payload, _webhook, sentWith) => {
    given.push(sentWith?.traceparent);
    return Promise.resolve(answer);
  });
  const settle = traces.settle((each) => {
    settled.push(each);
    return Promise.resolve();
  });
  return { spans, given, settled, send, settle };
}

it('makes a span of the attempt with its ids and outcome, and one of its settlement below it', async () => {
  const { spans, given, send, settle } = open();
  await send(due, PAYLOAD, WEBHOOK, { traceparent: PARENT });
  await settle(settledOf());
  expect(spans.all).toMatchObject([
    {
      step: 'attempt',
      parent: PARENT,
      startMs: 2_000,
      attributes: {
        'posthorn.message.id': due.messageId,
        'posthorn.delivery.id': due.deliveryId,
        'posthorn.webhook.id': 'wh_1',
        'posthorn.company.id': 'comp_a',
        'posthorn.attempt.number': 1,
      },
      ended: {
        endMs: 1_040,
        failure: 'http_5xx',
        attributes: { 'posthorn.attempt.outcome': 'http_5xx', 'http.response.status_code': 500 },
      },
    },
    { step: 'settle', parent: spans.all[0]?.traceparent, ended: { endMs: 2_000 } },
  ]);
  // The endpoint's own spans are below the attempt.
  expect(given).toEqual([spans.all[0]?.traceparent]);
});

it('makes the span of an attempt that was not sent when it is settled', async () => {
  const { spans, settle } = open();
  await settle(settledOf({ attempt: { ...attempt, outcome: 'token_failed' } }));
  expect(spans.all).toMatchObject([
    { step: 'attempt', parent: PARENT, startMs: 1_000, ended: { failure: 'token_failed' } },
    { step: 'settle', parent: spans.all[0]?.traceparent },
  ]);
});

it('ends the span of an attempt that the proxy failed', async () => {
  const { spans, send } = open(null);
  expect(await send(due, PAYLOAD, WEBHOOK, { traceparent: PARENT })).toBeNull();
  expect(spans.all).toMatchObject([{ ended: { failure: 'proxy_failed' } }]);
});

it.each([
  ['without a traceparent', undefined],
  ['that is not sampled', UNSAMPLED],
])('passes the traceparent on unchanged for a message %s, and makes no span', async (_, parent) => {
  const { spans, given, settled, send, settle } = open();
  await send(due, PAYLOAD, WEBHOOK, { traceparent: parent });
  await settle(settledOf({ headers: parent === undefined ? {} : { traceparent: parent } }));
  expect([spans.all, given, settled.length]).toEqual([[], [parent], 1]);
});

it('makes no span of what was recorded before, and of what was cancelled', async () => {
  const { spans, settled, settle } = open();
  await settle(settledOf({ isRecorded: true }));
  await settle({ kind: 'cancelled', due, reason: 'webhook_deleted' });
  expect([spans.all, settled.length]).toEqual([[], 2]);
});

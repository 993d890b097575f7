import { describe, expect, it } from '@jest/globals';
import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { decodeRetryDue, encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import {
  createAttemptHarness,
  finding,
  FOUND,
  MESSAGE_HEADERS,
  NOW_MS,
  SEALED,
  sendSuccessfully,
} from '../../../../test/support/isolation/attempt-harness.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import type { Cancellations } from '../cancellations.ts';
import type { SendWebhook } from '../sending/send-webhook.ts';

const REF = { ...refOf(sampleDue()), createdAtMs: NOW_MS };
const CREATED = encodeMessageCreated(REF, Buffer.from('{}'));
const RETRY = encodeRetryDue({ ...REF, attemptNumber: 3, dueAtMs: NOW_MS });
const created = sampleRecord({}, { topic: 'created', value: CREATED });
const createdRecord = (n: number) => {
  const value = encodeMessageCreated({ ...REF, messageId: `msg_${n}` }, Buffer.from('{}'));
  return sampleRecord({}, { topic: 'created', value });
};
const retry = sampleRecord({}, { topic: 'due', value: RETRY });
const LIMITED = { ...FOUND, webhook: sampleWebhook(1, { rateLimitPerSecond: 5 }) };
const never: SendWebhook = () => new Promise(() => undefined);
const settledNow = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a due attempt', () => {
  it('is sent, and settled with its outcome', async () => {
    const { attempt, sent, settled, loads } = createAttemptHarness();
    await attempt(created);
    expect([sent, loads.webhook]).toEqual([[1], 1]);
    expect(settled).toMatchObject([
      { attempt: { outcome: 'success' }, headers: { requestId: 'req_1' } },
    ]);
  });

  it('fails without a request when the secrets of the webhook cannot be opened, and is retried', async () => {
    const { attempt, sent, settled } = createAttemptHarness(finding(SEALED));
    await attempt(retry);
    expect(sent).toEqual([]);
    const id = attemptIdOf(deliveryIdOf(REF.messageId, REF.webhookId), 3);
    const made = { id, number: 3, trigger: 'retry', outcome: 'aborted', statusCode: null };
    const nothing = { response: null, responseHeaders: [], startedAtMs: NOW_MS, durationMs: 0 };
    expect(settled).toMatchObject([
      { attempt: { ...made, ...nothing }, headers: { requestId: 'req_1' } },
    ]);
  });

  it.each([
    ['webhook_deleted', null],
    ['webhook_disabled', { ...SEALED, disabled: true }],
  ])('is cancelled without a request: %s', async (reason, found) => {
    const { attempt, sent, settled } = createAttemptHarness(finding(found));
    await attempt(created);
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ reason }]);
  });

  it('is cancelled when its message is not stored any more', async () => {
    const { attempt, sent, settled } = createAttemptHarness({ payload: null });
    await attempt(retry);
    expect([sent, settled]).toMatchObject([[], [{ reason: 'message_missing' }]]);
  });

  it.each([
    ['its record has the payload', { isErased: () => true }, created],
    ['its payload has to be loaded', { payload: 'erased' as const }, retry],
  ])('is cancelled when its payload was erased: %s', async (_when, options, record) => {
    const { attempt, sent, settled, deadLetters } = createAttemptHarness(options);
    await attempt(record);
    expect([sent, settled, deadLetters]).toMatchObject([[], [{ reason: 'payload_erased' }], []]);
  });

  it('is settled without the response when its payload was erased during the request', async () => {
    let isErased = false;
    const send: SendWebhook = async (...args) => {
      isErased = true;
      return { ...(await sendSuccessfully(...args)), response: 'echo of the payload' };
    };
    const { attempt, settled } = createAttemptHarness({ send, isErased: () => isErased });
    await attempt(created);
    expect(settled).toMatchObject([{ attempt: { outcome: 'success', response: null } }]);
  });

  it.each([
    ['before it waits', created, 1],
    ['while it waits and its message is loaded', retry, 2],
  ])('is cancelled when a filter of a client selects it %s', async (_when, record, calls) => {
    let asked = 0;
    const types: unknown[] = [];
    const cancelledReason: Cancellations['reasonFor'] = (_due, eventType) => {
      asked += 1;
      types.push(eventType);
      return asked >= calls ? 'cancelled_by_client' : null;
    };
    const { attempt, sent, settled } = createAttemptHarness({ cancelledReason });
    await attempt(record);
    expect([sent, settled]).toMatchObject([[], [{ reason: 'cancelled_by_client' }]]);
  });

  it('ends with its failure when a filter of a client selects it during the request', async () => {
    let isCancelled = false;
    const send: SendWebhook = async (...args) => {
      isCancelled = true;
      return { ...(await sendSuccessfully(...args)), outcome: 'http_5xx' };
    };
    const cancelledReason = () => (isCancelled ? 'cancelled_by_client' : null);
    const { attempt, settled } = createAttemptHarness({ send, cancelledReason });
    await attempt(created);
    expect(settled).toMatchObject([{ cancelReason: 'cancelled_by_client' }]);
  });

  it.each([
    ['opened', { ...FOUND, webhook: { ...FOUND.webhook, companyId: 'comp_b' } }],
    ['unopened', { ...SEALED, companyId: 'comp_b' }],
  ])('becomes a dead letter when its webhook belongs to another company: %s', async (_k, found) => {
    const { attempt, sent, settled, deadLetters } = createAttemptHarness(finding(found));
    await attempt(created);
    expect([sent, settled]).toEqual([[], []]);
    expect(deadLetters).toEqual(['company_mismatch']);
  });

  it('passes only the headers of its message on to its retry', async () => {
    const { attempt, settled } = createAttemptHarness();
    const headers = { 'turn-at': '1', 'due-at': '1', 'deferred-since': '1', traceparent: '00-1' };
    await attempt(sampleRecord(headers, { topic: 'due', value: RETRY }));
    expect(settled).toMatchObject([{ headers: { requestId: 'req_1', traceparent: '00-1' } }]);
    expect(Object.keys((settled[0] as { headers: object }).headers)).toEqual([
      'requestId',
      'traceparent',
      'event-type',
    ]);
  });

  it('has the trace, the request id and the event type of its message when its record was made from the database', async () => {
    const sent: unknown[] = [];
    const send: SendWebhook = (due, payload, to, sentWith) => {
      sent.push(sentWith);
      return sendSuccessfully(due, payload, to, sentWith);
    };
    const { attempt, settled } = createAttemptHarness({ send });
    const record = sampleRecord({}, { topic: 'due', value: RETRY });
    await attempt({ ...record, headers: { 'turn-at': '1' } });
    const { traceparent, 'event-type': eventType } = MESSAGE_HEADERS;
    expect(sent).toEqual([{ traceparent, eventType }]);
    expect(settled).toMatchObject([{ headers: MESSAGE_HEADERS }]);
  });
});

describe('an attempt of an app that does not store everything', () => {
  const flags = { omitsResponses: true, erasesPayload: true } as const;
  const value = encodeRetryDue({ ...REF, ...flags, attemptNumber: 2, dueAtMs: 1 });
  const record = sampleRecord({}, { topic: 'due', value });

  it('is settled without the response of the endpoint', async () => {
    const send: SendWebhook = async (...args) => ({
      ...(await sendSuccessfully(...args)),
      outcome: 'http_4xx' as const,
      response: 'private',
      responseHeaders: [{ key: 'x-private', value: 'yes' }],
    });
    const { attempt, settled } = createAttemptHarness({ send });
    await attempt(record);
    const shown = { outcome: 'http_4xx', statusCode: 200, response: null, responseHeaders: [] };
    expect(settled).toMatchObject([{ attempt: shown }]);
    expect(JSON.stringify(settled)).not.toContain('private');
  });

  it('has its payload erased when it was recorded before', async () => {
    const { attempt, erased, settled } = createAttemptHarness({ remaining: { kind: 'drop' } });
    await attempt(sampleRecord({}, { topic: 'due', value, isInherited: true }));
    expect([erased, settled]).toEqual([[REF.messageId], []]);
  });
});

describe('an attempt while it is on hold', () => {
  const hold = { sinceMs: 1, untilMs: null, reason: null, by: 'key_1' };
  const held = { ...FOUND, webhook: { ...FOUND.webhook, held: hold } };
  const ended = { ...hold, untilMs: NOW_MS };
  const resend = encodeRetryDue({ ...REF, attemptNumber: 8, dueAtMs: 1, trigger: 'resend' });
  const test = encodeMessageCreated({ ...REF, trigger: 'test' }, Buffer.from('{}'));

  it.each([
    ['its webhook is on hold', finding(held)],
    ['its app is on hold', finding({ ...FOUND, appHeld: hold })],
    ['its secrets cannot be opened either', finding({ ...SEALED, held: hold })],
    ['its company is suspended', { isCompanySuspended: () => true }],
  ])('waits, retries too, and nothing is requested or published: %s', async (_why, options) => {
    const { attempt, sent, settled, published } = createAttemptHarness(options);
    await attempt(created);
    await attempt(retry);
    expect([sent, published]).toEqual([[], []]);
    expect(settled).toMatchObject([
      { kind: 'waiting', due: { attemptNumber: 1 } },
      { kind: 'waiting', due: { attemptNumber: 3 } },
    ]);
  });

  it.each([
    [
      'the hold has ended by itself',
      finding({ ...FOUND, webhook: { ...FOUND.webhook, held: ended } }),
    ],
    ['that of its app has', finding({ ...FOUND, appHeld: ended })],
  ])('is made when %s', async (_why, options) => {
    const { attempt, sent } = createAttemptHarness(options);
    await attempt(created);
    expect(sent).toEqual([1]);
  });

  it('is cancelled when its webhook is disabled too', async () => {
    const webhook = { ...held.webhook, disabled: true };
    const { attempt, settled } = createAttemptHarness(finding({ ...held, webhook }));
    await attempt(retry);
    expect(settled).toMatchObject([{ kind: 'cancelled', reason: 'webhook_disabled' }]);
  });

  it('is dropped when it is a resend, which keeps its mark', async () => {
    const { attempt, sent, settled, settledResends } = createAttemptHarness(finding(held));
    await attempt(sampleRecord({}, { topic: 'due', value: resend }));
    expect([sent, settled, settledResends]).toEqual([[], [], []]);
  });

  it('is made when it is a test, unless the company is suspended', async () => {
    const record = sampleRecord({}, { topic: 'created', value: test });
    const { attempt, sent } = createAttemptHarness(finding(held));
    await attempt(record);
    const suspended = createAttemptHarness({ isCompanySuspended: () => true });
    await suspended.attempt(record);
    expect([sent, suspended.sent]).toEqual([[1], []]);
  });

  it('waits when the hold begins while it waits for its slot', async () => {
    let found = FOUND;
    let finish: () => void = () => undefined;
    const { attempt, sent, settled } = createAttemptHarness({
      perEndpoint: 1,
      loadWebhook: () => Promise.resolve(found),
      send: async (...args) => {
        await new Promise<void>((resolve) => (finish = resolve));
        return sendSuccessfully(...args);
      },
    });
    const both = [attempt(createdRecord(1)), attempt(createdRecord(2))];
    await settledNow();
    found = held;
    finish();
    await Promise.all(both);
    expect(sent).toEqual([1]);
    expect(settled).toMatchObject([{ attempt: { number: 1 } }, { kind: 'waiting' }]);
  });
});

describe('an attempt to a webhook that was deleted', () => {
  it.each([
    ['with its company, is dropped', true, []],
    ['alone, cancels its delivery', false, [{ kind: 'cancelled', reason: 'webhook_deleted' }]],
  ])('%s', async (_what, isCompanyRemoved, expected) => {
    const { attempt, settled, sent } = createAttemptHarness({
      isCompanyRemoved,
      loadWebhook: () => Promise.resolve(null),
    });
    await attempt(created);
    expect(settled).toMatchObject(expected);
    expect([settled.length, sent]).toEqual([expected.length, []]);
  });
});

describe('an attempt that its endpoint cannot take', () => {
  it('moves to the slow lane, unchanged but without its payload, when the endpoint takes a second', async () => {
    const { attempt, published, sent, pass } = createAttemptHarness({ send: never });
    void attempt(createdRecord(1));
    await settledNow();
    pass(1_000);
    await attempt(createdRecord(2));
    expect(sent).toEqual([1]);
    expect(published).toMatchObject([
      { topic: 'slow', key: 'wh_1', headers: { requestId: 'req_1' } },
    ]);
    expect(decodeRetryDue(published[0]?.value ?? Buffer.alloc(0))).toMatchObject({
      ...REF,
      messageId: 'msg_2',
      attemptNumber: 1,
      trigger: 'first',
      dueAtMs: NOW_MS,
    });
  });

  const slow = (n: number): LogRecord => {
    const value = encodeRetryDue({ ...REF, messageId: `msg_${n}`, attemptNumber: 1, dueAtMs: 1 });
    return sampleRecord({}, { topic: 'slow', value });
  };

  it.each([
    ['over the slow lane', slow],
    ['as a fresh message', createdRecord],
  ])('is deferred when it came %s and would wait too long', async (_how, record) => {
    const around = { send: never, perEndpoint: 1, maxWaitMs: 1_000 };
    const { attempt, published, deferred } = createAttemptHarness(around);
    for (let n = 0; n < 13; n += 1) void attempt(record(n));
    await eventually('deferred', () => deferred.length > 0);
    expect(deferred).toEqual(['concurrency']);
    expect(published).toMatchObject([
      { topic: 'deferred', headers: { 'due-at': String(NOW_MS + 5_000) } },
    ]);
  });

  it('waits without its payload when it is expected to wait for longer than a second', async () => {
    const around = { send: never, perEndpoint: 1 };
    const { attempt, heldBytes } = createAttemptHarness(around);
    const records = Array.from({ length: 13 }, (_, n) => createdRecord(n));
    for (const record of records) void attempt(record);
    await settledNow();
    const hasPayload = records.map(({ value }) => value.at(-1) !== 0x0a);
    expect(hasPayload).toEqual(records.map((_, n) => n < 12));
    expect(heldBytes()).toBeGreaterThan(13 * 2_048);
  });

  it('is made instead of moved to the slow lane when its webhook has a rate limit', async () => {
    const { attempt, sent, pass } = createAttemptHarness({ ...finding(LIMITED), send: never });
    void attempt(createdRecord(1));
    await settledNow();
    pass(1_000);
    void attempt(createdRecord(2));
    await eventually('made', () => sent.length === 2);
  });
});

it('an attempt that comes back long before its reservation is deferred again, if its webhook has a rate limit', async () => {
  const reservedAtMs = NOW_MS + 20_000;
  const { attempt, published, sent } = createAttemptHarness(finding(LIMITED));
  await attempt(sampleRecord({ 'turn-at': String(reservedAtMs) }, { topic: 'due', value: RETRY }));
  expect(sent).toEqual([]);
  expect(published).toMatchObject([
    { topic: 'deferred', headers: { 'turn-at': String(reservedAtMs) } },
  ]);
});

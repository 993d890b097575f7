import { describe, expect, it } from '@jest/globals';
import { refOf } from '@posthorn/domain/delivery/delivery.ts';
import { encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { decodeRetryDue, encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import {
  createAttemptHarness,
  FOUND,
  NOW_MS,
} from '../../../../test/support/isolation/attempt-harness.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';

const REF = { ...refOf(sampleDue()), createdAtMs: NOW_MS };
const CREATED = encodeMessageCreated(REF, Buffer.from('{}'));
const RETRY = encodeRetryDue({ ...REF, attemptNumber: 3, dueAtMs: NOW_MS });
const created = sampleRecord({}, { topic: 'created', value: CREATED });
const createdRecord = (n: number) => {
  const value = encodeMessageCreated({ ...REF, messageId: `msg_${n}` }, Buffer.from('{}'));
  return sampleRecord({}, { topic: 'created', value });
};
const retry = sampleRecord({}, { topic: 'due', value: RETRY });
const settledNow = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('an attempt that waited', () => {
  it('for its payload is cancelled when its webhook was disabled meanwhile', async () => {
    let lookups = 0;
    const { attempt, sent, settled } = createAttemptHarness({
      loadWebhook() {
        const disabled = lookups > 0;
        lookups += 1;
        return Promise.resolve({ ...FOUND, webhook: { ...FOUND.webhook, disabled } });
      },
    });
    await attempt(retry);
    expect(sent).toEqual([]);
    expect(settled).toMatchObject([{ reason: 'webhook_disabled' }]);
  });

  it.each([
    ['its webhook was disabled', 'webhook_disabled'],
    ['its payload was erased', 'payload_erased'],
  ])('for a slot is cancelled when %s meanwhile', async (_what, reason) => {
    let isChanged = false;
    let finish: () => void = () => undefined;
    const { attempt, sent, settled } = createAttemptHarness({
      perEndpoint: 1,
      loadWebhook: () =>
        Promise.resolve({
          ...FOUND,
          webhook: { ...FOUND.webhook, disabled: isChanged && reason === 'webhook_disabled' },
        }),
      isErased: () => isChanged && reason === 'payload_erased',
      send: async ({ attemptNumber: number, trigger }) => {
        await new Promise<void>((resolve) => (finish = resolve));
        const what = { id: 'att', number, trigger, statusCode: 200, response: null };
        return { ...what, outcome: 'success', responseHeaders: [], startedAtMs: 1, durationMs: 1 };
      },
    });
    const both = [attempt(createdRecord(1)), attempt(createdRecord(2))];
    await settledNow();
    isChanged = true;
    finish();
    await Promise.all(both);
    expect(sent).toEqual([1]);
    expect(settled).toMatchObject([{ attempt: { number: 1 } }, { reason }]);
  });
});

describe('an attempt of a process that was suspended before the request', () => {
  it('is claimed again, and not sent when another process has recorded it meanwhile', async () => {
    let clockMs = 0;
    const { attempt, sent, loads } = createAttemptHarness({
      leaseClockMs: () => clockMs,
      remaining: { kind: 'drop' },
      loadWebhook: () => {
        clockMs += 10_000;
        return Promise.resolve(FOUND);
      },
    });
    await attempt(created);
    expect([sent, loads.recorded]).toEqual([[], 1]);
  });

  it('is claimed again, and sent when nobody has', async () => {
    let clockMs = 0;
    const { attempt, sent, settled } = createAttemptHarness({
      leaseClockMs: () => clockMs,
      loadWebhook: () => {
        clockMs += clockMs === 0 ? 10_000 : 0;
        return Promise.resolve(FOUND);
      },
    });
    await attempt(created);
    expect([sent, settled.length]).toEqual([[1], 1]);
  });
});

it('an attempt whose request our proxy failed is deferred, and nothing of it is settled', async () => {
  const { attempt, published, settled, deferred } = createAttemptHarness({
    send: () => Promise.resolve(null),
  });
  await attempt(retry);
  expect([deferred, settled]).toEqual([['proxy'], []]);
  expect(published).toMatchObject([
    { topic: 'deferred', headers: { 'turn-at': String(NOW_MS + 30_000) } },
  ]);
  const value = published[0]?.value ?? Buffer.alloc(0);
  expect(decodeRetryDue(value)).toMatchObject({ attemptNumber: 3, trigger: 'retry' });
});

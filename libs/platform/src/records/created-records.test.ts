import { describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import fc from 'fast-check';
import type { OutgoingRecord } from '../kafka/record-log.ts';
import { createdRecords, ONE_SEND, publishInBatches, takeForOneSend } from './created-records.ts';

const targets = (count: number) => Array.from({ length: count }, (_, index) => `wh_${index}`);

function message(payload: string, targetCount = 1): Message {
  return {
    id: 'msg_1',
    companyId: 'comp_1',
    appId: 'app_1',
    payload,
    targets: targets(targetCount),
    publisherId: 'gw_1',
    requestId: 'request-1',
    createdAtMs: 5,
    eventType: null,
    disabledTargets: new Set<string>(),
    idempotency: null,
  };
}

const payloadsOf = (one: Message) =>
  createdRecords('created', one).map(({ value }) =>
    decodeMessageCreated(value).payload?.toString(),
  );

describe('the records of a created message', () => {
  test('are one for each webhook, with its id as the key and the request id', () => {
    const records = createdRecords('created', message('{}', 2));
    expect(records.map(({ topic, key, headers }) => ({ topic, key, headers }))).toEqual(
      ['wh_0', 'wh_1'].map((key) => ({
        topic: 'created',
        key,
        headers: { requestId: 'request-1' },
      })),
    );
    const [first] = records.map(({ value }) => decodeMessageCreated(value));
    expect(first).toMatchObject({
      messageId: 'msg_1',
      webhookId: 'wh_0',
      appId: 'app_1',
      dueAtMs: 5,
    });
  });

  test('carry a payload of up to 16 KiB, counted in bytes', () => {
    const largest = 'x'.repeat(16_384);
    expect(payloadsOf(message(largest))).toEqual([largest]);
    expect(payloadsOf(message(`${largest}x`))).toEqual([undefined]);
    expect(payloadsOf(message('é'.repeat(8_193)))).toEqual([undefined]);
  });

  test('carry it to up to 32 webhooks', () => {
    expect(payloadsOf(message('{}', 32))).toEqual(Array<string>(32).fill('{}'));
    expect(payloadsOf(message('{}', 33))).toEqual(Array<undefined>(33).fill(undefined));
  });

  test('mark cancelled deliveries and test messages', () => {
    const source = {
      ...message('{}', 2),
      disabledTargets: new Set(['wh_1']),
      isTest: true as const,
    };
    const records = createdRecords('created', source).map(({ value }) =>
      decodeMessageCreated(value),
    );
    expect(records).toMatchObject([
      { isCancelled: false, trigger: 'test' },
      { isCancelled: true, trigger: 'test' },
    ]);
  });

  test('carry the ordering key when a target has an order, and no field otherwise', () => {
    const keyed = { ...message('{}', 2), orderingKey: 'order-17' };
    const textsOf = (one: Message) =>
      createdRecords('created', one).map(({ value }) => value.toString());
    const [first = ''] = textsOf({ ...keyed, isOrdered: true });
    expect(decodeMessageCreated(Buffer.from(first))).toMatchObject({ orderingKey: 'order-17' });
    expect(textsOf(keyed)).toEqual(textsOf(message('{}', 2)));
  });

  test('are none without targets', () => {
    expect(createdRecords('created', message('{}', 0))).toEqual([]);
  });
});

describe('the messages of one send', () => {
  const limits = fc.record({ maxMessages: fc.nat(10), maxChars: fc.nat(5_000) });
  const messages = fc.array(
    fc.tuple(fc.nat(3_000), fc.nat(5)).map(([size, count]) => message('x'.repeat(size), count)),
    { minLength: 1, maxLength: 20 },
  );

  test('are the first ones, at least one, and within the limits otherwise', () => {
    fc.assert(
      fc.property(messages, limits, (all, { maxMessages, maxChars }) => {
        const taken = takeForOneSend(all, { maxMessages, maxChars });
        expect(taken.length).toBeGreaterThanOrEqual(1);
        expect(taken).toEqual(all.slice(0, taken.length));
        if (taken.length === 1) return;
        expect(taken.length).toBeLessThanOrEqual(maxMessages);
        const chars = taken.reduce(
          (sum, { payload, targets }) => sum + payload.length * targets.length,
          0,
        );
        expect(chars).toBeLessThanOrEqual(maxChars);
      }),
    );
  });

  test('fill up to the limits', () => {
    const small = Array.from({ length: 600 }, () => message('{}'));
    expect(takeForOneSend(small, ONE_SEND)).toHaveLength(500);
    const large = Array.from({ length: 9 }, () => message('x'.repeat(200_000), 2));
    expect(takeForOneSend(large, ONE_SEND)).toHaveLength(5);
  });

  test('are none when there are no messages', () => {
    expect(takeForOneSend([], ONE_SEND)).toEqual([]);
  });
});

test('every record of every message is published once, at most 500 at a time', async () => {
  const sends: (readonly OutgoingRecord[])[] = [];
  const publish = (records: readonly OutgoingRecord[]) => {
    sends.push(records);
    return Promise.resolve();
  };
  await publishInBatches({ publish }, 'created', [
    message('{}', 1_200),
    { ...message('{}', 3), id: 'msg_2' },
  ]);
  expect(sends.map(({ length }) => length)).toEqual([500, 500, 200, 3]);
  expect(new Set(sends.flat().map(({ key, value }) => key + value.toString())).size).toBe(1_203);
});

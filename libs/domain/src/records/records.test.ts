import { describe, expect, test } from '@jest/globals';
import { type DeliveryRef, refOf } from '../delivery/delivery.ts';
import { attemptIdOf, deliveryIdOf } from '../ids.ts';
import { readRecord, UnreadableRecordError } from './record-value.ts';
import {
  decodeEndedAttempt,
  decodeMessageCreated,
  encodeDeliveryFailed,
  encodeDisabling,
  encodeMessageCreated,
  logFieldsIn,
  logFieldsOf,
  logFieldsOfMany,
} from './records.ts';
import { decodeRetryDue, encodeRetryDue } from './retry-due.ts';

describe('records', () => {
  const ref: DeliveryRef = {
    messageId: 'msg_1',
    webhookId: 'wh_1',
    companyId: 'comp_1',
    appId: 'app_1',
    createdAtMs: 1_700_000_000_123,
  };
  const failed = {
    ...ref,
    attemptNumber: 3,
    endedAtMs: 1_700_000_009_999,
    outcome: 'http_5xx',
    statusCode: 503,
  };

  function idsOf(attemptNumber: number) {
    const deliveryId = deliveryIdOf(ref.messageId, ref.webhookId);
    return { deliveryId, attemptId: attemptIdOf(deliveryId, attemptNumber) };
  }

  describe('a message-created record', () => {
    test.each([
      ['a newline in the payload', Buffer.from('{\n"a":\n\n1}\n')],
      ['bytes that are not UTF-8', Buffer.from([0x0a, 0xff, 0x00, 0xfe, 0x0a])],
      ['numbers that JSON.parse would change', Buffer.from('{"n":12345678901234567890,"x":1e400}')],
    ])('carries %s byte for byte', (_what, payload) => {
      expect(decodeMessageCreated(encodeMessageCreated(ref, payload)).payload).toEqual(payload);
    });

    test('is the first attempt, due when the message was created', () => {
      expect(decodeMessageCreated(encodeMessageCreated(ref, null))).toEqual({
        version: 1,
        ...ref,
        ...idsOf(1),
        attemptNumber: 1,
        trigger: 'first',
        dueAtMs: ref.createdAtMs,
        isCancelled: false,
        payload: null,
      });
    });

    test('names no app when the message was addressed to one webhook', () => {
      const value = encodeMessageCreated({ ...ref, appId: null }, null);
      expect(decodeMessageCreated(value).appId).toBeNull();
    });
  });

  describe('a retry-due record', () => {
    test('comes back as the attempt it asks for, without a payload', () => {
      const retry = { ...ref, attemptNumber: 4, dueAtMs: 1_700_000_005_000 };
      expect(decodeRetryDue(encodeRetryDue(retry))).toEqual({
        version: 1,
        ...retry,
        ...idsOf(4),
        trigger: 'retry',
        isCancelled: false,
        payload: null,
      });
    });
  });

  describe('the ordering key and the position of a delivery', () => {
    const order = { orderingKey: 'order-17', position: 4_711 };
    const lineOf = (value: Buffer): object => JSON.parse(String(value)) as object;

    test('come back from every record', () => {
      const all = [
        decodeMessageCreated(encodeMessageCreated({ ...ref, ...order }, null)),
        decodeRetryDue(encodeRetryDue({ ...ref, ...order, attemptNumber: 4, dueAtMs: 5 })),
        decodeEndedAttempt(encodeDeliveryFailed({ ...failed, ...order })),
      ];
      for (const each of all) expect(each).toMatchObject(order);
    });

    test('add to what the version before reads, and change nothing of it: that version delivers without order', () => {
      const due = { ...ref, attemptNumber: 4, dueAtMs: 5 };
      expect(lineOf(encodeMessageCreated({ ...ref, ...order }, null))).toEqual({
        ...lineOf(encodeMessageCreated(ref, null)),
        ...order,
      });
      expect(lineOf(encodeRetryDue({ ...due, ...order }))).toEqual({
        ...lineOf(encodeRetryDue(due)),
        ...order,
      });
      expect(lineOf(encodeDeliveryFailed({ ...failed, ...order }))).toEqual({
        ...lineOf(encodeDeliveryFailed(failed)),
        ...order,
      });
    });
  });

  describe('a delivery-failed record', () => {
    test('comes back as it was written', () => {
      const kind = { kind: 'failed', version: 1 };
      expect(decodeEndedAttempt(encodeDeliveryFailed(failed))).toEqual({ ...kind, ...failed });
      const silent = { ...failed, outcome: 'timeout', statusCode: null, ending: 'gone' } as const;
      expect(decodeEndedAttempt(encodeDeliveryFailed(silent))).toEqual({ ...kind, ...silent });
    });

    test('lends its identity to the retry and nothing else', () => {
      expect(refOf(decodeEndedAttempt(encodeDeliveryFailed(failed)))).toEqual(ref);
    });
  });

  describe('the record of an attempt that disables its webhook', () => {
    const disabling = { ...failed, statusCode: 410, reason: 'gone', changedAtMs: 7 } as const;
    const disables = { reason: 'gone', changedAtMs: 7 };

    test('comes back as it was written, and is no failure', () => {
      const expected = { kind: 'disables', version: 1, ...disabling };
      expect(decodeEndedAttempt(encodeDisabling(disabling))).toEqual(expected);
    });

    test('has the fields of a failure, which processes of the version before read', () => {
      const fields: unknown = JSON.parse(encodeDisabling(disabling).toString());
      expect(fields).toEqual({ version: 1, ...failed, statusCode: 410, disables });
    });

    test('is read as the version before wrote it, with the end of the delivery', () => {
      const written = { version: 1, ...failed, statusCode: 410, ending: 'gone', disables };
      expect(decodeEndedAttempt(Buffer.from(JSON.stringify(written)))).toEqual({
        kind: 'disables',
        version: 1,
        ...disabling,
      });
    });

    test('is a failure when only a later version knows why', () => {
      const later = { version: 1, ...failed, disables: { reason: 'asleep', changedAtMs: 7 } };
      const expected = { kind: 'failed', version: 1, ...failed };
      expect(decodeEndedAttempt(Buffer.from(JSON.stringify(later)))).toEqual(expected);
    });

    test('names its delivery', () => {
      const { messageId, webhookId, companyId } = ref;
      const ids = { messageId, webhookId, companyId, deliveryId: deliveryIdOf('msg_1', 'wh_1') };
      const record = { topic: 'p.delivery-failed', value: encodeDisabling(disabling) };
      expect(logFieldsIn('p.', record)).toEqual(ids);
    });
  });

  describe('an unreadable record', () => {
    const line = (changes: object) =>
      Buffer.from(`${JSON.stringify({ version: 1, ...failed, dueAtMs: 1, ...changes })}\n`);
    const decoders = [
      ['message-created', decodeMessageCreated],
      ['retry-due', decodeRetryDue],
      ['delivery-failed', decodeEndedAttempt],
    ] as const;

    const unreadable: [string, Buffer][] = [
      ['an empty value', Buffer.alloc(0)],
      ['a newline alone', Buffer.from('\n')],
      ['no JSON', Buffer.from('{"version":1\n')],
      ['null', Buffer.from('null\n')],
      ['a list', Buffer.from('[]\n')],
      ['a version of the future', line({ version: 2 })],
      ['no version', line({ version: undefined })],
      ['a message id of another kind', line({ messageId: 'wh_1' })],
      ['an endless webhook id', line({ webhookId: `wh_${'x'.repeat(64)}` })],
      ['no company', line({ companyId: undefined })],
      ['a time that is text', line({ createdAtMs: '1' })],
    ];
    const cases = decoders.flatMap(([name, decode]) =>
      unreadable.map(([what, value]) => ({ name, what, decode, value })),
    );

    test.each(cases)('$name with $what', ({ decode, value }) => {
      expect(() => decode(value)).toThrow(UnreadableRecordError);
    });

    test('of a later version says so, and what to do', () => {
      expect(() => decodeEndedAttempt(line({ version: 2, companyId: undefined }))).toThrow(
        'a version 2 record, and this process reads version 1: replay it when all processes are upgraded',
      );
    });

    test.each([0, -1, 1.5, '1', null])('asks for attempt %j', (attemptNumber) => {
      expect(() => decodeRetryDue(line({ attemptNumber }))).toThrow(UnreadableRecordError);
      expect(() => decodeEndedAttempt(line({ attemptNumber }))).toThrow(UnreadableRecordError);
    });

    test('is told by the names of its wrong fields, never by their values', () => {
      expect(() => decodeRetryDue(line({ companyId: 'wrong-7781', dueAtMs: 'late' }))).toThrow(
        'not a version 1 record: companyId, dueAtMs',
      );
    });

    test('comes back as a value, whatever the decoder throws', () => {
      const error = new UnreadableRecordError('no');
      const thrown = (cause: Error) =>
        readRecord(() => {
          throw cause;
        });
      expect(thrown(error)).toBe(error);
      expect(thrown(new RangeError('odd'))).toBeInstanceOf(UnreadableRecordError);
      expect(readRecord(() => 5)).toBe(5);
    });

    test('has no first line', () => {
      const value = Buffer.from(JSON.stringify({ version: 1, ...ref }));
      expect(() => decodeMessageCreated(value)).toThrow('no newline after the first line');
    });
  });
});

describe('record subject', () => {
  const ref = {
    messageId: 'msg_1',
    webhookId: 'wh_1',
    companyId: 'comp_a',
    appId: null,
    createdAtMs: 1_000,
  };

  test('A record names whom it is about, whichever topic it is of', () => {
    const value = encodeRetryDue({ ...ref, attemptNumber: 2, dueAtMs: 5_000 });
    const { messageId, webhookId, companyId } = ref;
    const ids = { messageId, webhookId, companyId, deliveryId: deliveryIdOf('msg_1', 'wh_1') };
    for (const topic of ['p.retry-due', 'p.retry.5s', 'p.slow-lane']) {
      expect(logFieldsIn('p.', { topic, value })).toEqual(ids);
    }
  });

  test('A record that cannot be read, or of another topic, names nobody', () => {
    const value = Buffer.from('{}');
    expect(logFieldsIn('p.', { topic: 'p.retry-due', value })).toBeNull();
    expect(logFieldsIn('p.', { topic: 'p.operator-events', value })).toBeNull();
  });
});

describe('log fields', () => {
  const ref = { messageId: 'msg_1', deliveryId: 'dlv_1', webhookId: 'wh_1', companyId: 'comp_1' };

  test('a line has the ids of its delivery, and nothing else that is known of it', () => {
    const due = { ...ref, payload: Buffer.from('secret'), appId: 'app_1' };
    expect(logFieldsOf(due)).toEqual(ref);
  });

  test('a line about many deliveries has each id once, and five of a kind at most', () => {
    const many = Array.from({ length: 9 }, (_, n) => ({ ...ref, deliveryId: `dlv_${n}` }));
    expect(logFieldsOfMany(many)).toEqual({
      messageIds: ['msg_1'],
      deliveryIds: ['dlv_0', 'dlv_1', 'dlv_2', 'dlv_3', 'dlv_4'],
      webhookIds: ['wh_1'],
      companyIds: ['comp_1'],
    });
  });
});

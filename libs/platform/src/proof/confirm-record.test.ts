import { beforeEach, describe, expect, test } from '@jest/globals';
import type { DeliveryState } from '@posthorn/domain/message/delivery.ts';
import { refOf } from '@posthorn/domain/message/delivery.ts';
import type { Message } from '@posthorn/domain/message/message.ts';
import {
  decodeMessageCreated,
  encodeDeliveryFailed,
  encodeMessageCreated,
  encodeRetryDue,
} from '@posthorn/domain/records/records.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { sampleDue, sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import type { LogRecord } from '../kafka/record-log.ts';
import { createConfirmRecord } from './confirm-record.ts';

const NOW_MS = 1_000_000;
const ref = refOf(sampleDue());
const { messageId, companyId, appId, createdAtMs } = ref;
const message = sampleMessage(messageId, { companyId, appId, createdAtMs, requestId: 'req_9' });

let stored: Message[];
let delivery: DeliveryState | null;

beforeEach(() => {
  [stored, delivery] = [[message], null];
});

const confirm = (record: LogRecord) =>
  createConfirmRecord({
    prefix: 'p.',
    messages: {
      findCommitted: (ids) => Promise.resolve(stored.filter(({ id }) => ids.includes(id))),
    },
    deliveries: {
      statesOf: (ids) =>
        Promise.resolve(new Map(ids.flatMap((id) => (delivery ? [[id, delivery] as const] : [])))),
    },
    keepTrying,
    nowMs: () => NOW_MS,
  })(record);

const createdBy = (changed: object = {}, payload = '{"n":1}') =>
  sampleRecord(
    {},
    {
      topic: 'p.message-created',
      value: encodeMessageCreated({ ...ref, ...changed }, Buffer.from(payload)),
    },
  );
const due = (attemptNumber: number, topic = 'p.retry-due') =>
  sampleRecord(
    { 'due-at': '9' },
    { topic, value: encodeRetryDue({ ...ref, attemptNumber, dueAtMs: 9 }) },
  );
const failed = (attemptNumber: number, endedAtMs = 5) => {
  const outcome = { endedAtMs, outcome: 'timeout', statusCode: null };
  const value = encodeDeliveryFailed({ ...ref, attemptNumber, ...outcome });
  return sampleRecord({}, { topic: 'p.delivery-failed', value });
};

describe('an unproven record of a new message', () => {
  test('is made again from the stored message, and its delivery is looked up', async () => {
    const forged = createdBy({ isCancelled: true }, '{"of":"a stranger"}');
    const confirmed = await confirm(forged);
    expect(confirmed).toMatchObject({ isInherited: true, headers: { requestId: 'req_9' } });
    const read = decodeMessageCreated(confirmed?.value ?? Buffer.alloc(0));
    expect(read).toMatchObject({ ...ref, isCancelled: false });
    expect(String(read.payload)).toBe(message.payload);
  });

  test.each([
    ['message', { messageId: 'msg_01m7y9sd1vcyc08g7bpf97f5mn' }],
    ['webhook', { webhookId: 'wh_2' }],
    ['company', { companyId: 'comp_b' }],
    ['app', { appId: null }],
    ['time', { createdAtMs: 1 }],
  ])('is refused when the store has another %s', async (_what, changed) => {
    expect(await confirm(createdBy(changed))).toBeNull();
  });
});

describe('an unproven record of a later attempt', () => {
  test.each(['p.retry-due', 'p.slow-lane', 'p.retry.5s', 'p.deferred.30s'])(
    'in %s is taken when all attempts before it are recorded',
    async (topic) => {
      delivery = { status: 'pending', attemptCount: 2 };
      const record = due(3, topic);
      expect(await confirm(record)).toMatchObject({ value: record.value, isInherited: true });
      expect(await confirm(due(4, topic))).toBeNull();
    },
  );

  test('is the first one of a delivery without a document', async () => {
    expect(await confirm(due(1))).not.toBeNull();
    expect(await confirm(due(2))).toBeNull();
  });

  test('keeps its value and its times, and nothing else that a stranger may have written', async () => {
    delivery = { status: 'pending', attemptCount: 2 };
    const { value } = due(3);
    const headers = { 'due-at': '9', traceparent: 'forged', requestId: 'forged', other: 'x' };
    const record = sampleRecord(headers, { topic: 'p.retry-due', key: 'forged', value });
    expect(await confirm(record)).toMatchObject({
      key: ref.webhookId,
      value,
      headers: { 'due-at': '9', requestId: 'req_9' },
      isInherited: true,
    });
    expect(Object.keys((await confirm(record))?.headers ?? {})).toHaveLength(2);
  });

  test('follows a failure that is recorded', async () => {
    delivery = { status: 'pending', attemptCount: 2 };
    expect(await confirm(failed(2))).not.toBeNull();
    expect(await confirm(failed(3))).toBeNull();
    expect(await confirm(failed(2, NOW_MS + 3_600_000))).toBeNull();
  });
});

test('an unproven record that cannot be read is left to its reader', async () => {
  const record = sampleRecord({}, { topic: 'p.retry-due', value: Buffer.from('not JSON') });
  expect(await confirm(record)).toBe(record);
});

test('a record of a topic that is not ours is refused', async () => {
  expect(await confirm(due(1, 'elsewhere'))).toBeNull();
});

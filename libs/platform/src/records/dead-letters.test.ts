import { describe, expect, test } from '@jest/globals';
import type { OperatorIncident } from '@posthorn/domain/operator-events.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { Registry } from 'prom-client';
import { createDeadLetters, cutDeadLetter, readDeadLetter, toDeadLetter } from './dead-letters.ts';
import type { LogRecord, OutgoingRecord } from '../kafka/record-log.ts';
import { collectLogLines } from '../../../../test/support/sources/log-lines.ts';
import { sampleDue } from '../../../../test/support/samples/sample-record.ts';

const record: LogRecord = {
  topic: 'retry-due',
  partition: 3,
  offset: 42,
  key: 'wh_1',
  value: Buffer.from([0xff, 0x0a]),
  isInherited: false,
  stored: { key: null, value: null, headers: {} },
  ownedSinceMs: 0,
  timestampMs: 0,
  headers: { requestId: 'request-1', 'due-at': '5' },
};

function createWith(publish: (records: readonly OutgoingRecord[]) => Promise<void>) {
  const registry = new Registry();
  const unused = () => Promise.reject(new Error('not used here'));
  const records = { publish, consume: unused, close: unused, isConnected: () => true };
  const { logger, lines } = collectLogLines();
  const incidents: OperatorIncident[] = [];
  const report = (incident: OperatorIncident): void => void incidents.push(incident);
  const topics = { deadLetters: 'dead', exhaustedDeliveries: 'exhausted' };
  const letters = createDeadLetters(topics, { records, prefix: '', logger, registry, report });
  return { registry, letters, lines, incidents };
}

/** As kafkajs wraps what a broker answered. */
const tooLarge = (): Error =>
  new Error('refused', { cause: Object.assign(new Error(), { type: 'MESSAGE_TOO_LARGE' }) });

/** Every reason is there from the start, at 0. */
async function countIn(registry: Registry) {
  const metric = await registry.getSingleMetric('posthorn_dead_letter_records_total')?.get();
  return metric?.values.filter(({ value }) => value > 0);
}

describe('a dead letter', () => {
  test('is the unchanged record with the reason and its place', async () => {
    const published: OutgoingRecord[] = [];
    const { letters, registry } = createWith((records) => {
      published.push(...records);
      return Promise.resolve();
    });
    await letters.put(record, 'unreadable_record', 'not JSON');
    expect(published).toEqual([
      {
        topic: 'dead',
        key: 'wh_1',
        value: record.value,
        headers: {
          requestId: 'request-1',
          'due-at': '5',
          reason: 'unreadable_record',
          'source-topic': 'retry-due',
          'source-offset': '3:42',
          detail: 'not JSON',
        },
      },
    ]);
    expect(await countIn(registry)).toMatchObject([
      { value: 1, labels: { reason: 'unreadable_record' } },
    ]);
  });

  test('is cut when its record is too large for the added headers', async () => {
    const published: OutgoingRecord[] = [];
    const { letters, registry } = createWith((records) => {
      if (Number(records[0]?.value.length) > 900_000) return Promise.reject(tooLarge());
      published.push(...records);
      return Promise.resolve();
    });
    await letters.put({ ...record, value: Buffer.alloc(1_000_000) }, 'unreadable_record', 'no');
    expect(published).toMatchObject([
      { key: 'wh_1', headers: { reason: 'unreadable_record', 'cut-from-bytes': '1000000' } },
    ]);
    expect(await countIn(registry)).toMatchObject([{ value: 1 }]);
  });

  test('is logged with the ids of its delivery, if they can be read', async () => {
    const { letters, lines } = createWith(() => Promise.resolve());
    const due = sampleDue();
    const { messageId, deliveryId, webhookId, companyId } = due;
    const value = encodeRetryDue(due);
    await letters.put({ ...record, value }, 'company_mismatch', 'detail');
    await letters.put(record, 'unreadable_record', 'not JSON');
    expect(lines).toMatchObject([
      { reason: 'company_mismatch', messageId, deliveryId, webhookId, companyId, offset: 42 },
      { reason: 'unreadable_record', offset: 42 },
    ]);
    expect(lines[1]).not.toHaveProperty('webhookId');
  });

  test('is told to the operator, with its ids unless a stranger wrote the record', async () => {
    const { letters, incidents } = createWith(() => Promise.resolve());
    const { webhookId, companyId } = sampleDue();
    const known = { ...record, value: encodeRetryDue(sampleDue()) };
    await letters.put(known, 'schedule_exhausted', 'attempt 7 ended timeout');
    await letters.put(known, 'unproven_record', 'no MAC');
    const detail = 'schedule_exhausted: attempt 7 ended timeout';
    expect(incidents).toEqual([
      { type: 'delivery.exhausted', webhookId, companyId, detail },
      {
        type: 'dead_letter.written',
        webhookId: null,
        companyId: null,
        detail: 'unproven_record: no MAC',
      },
    ]);
  });

  test.each(['schedule_exhausted', 'gone', 'not_retryable', 'aborted'] as const)(
    'of an exhausted delivery has a topic of its own, and is no fault: %s',
    async (reason) => {
      const published: OutgoingRecord[] = [];
      const { letters, registry, lines } = createWith((records) => {
        published.push(...records);
        return Promise.resolve();
      });
      await letters.put(record, reason, 'attempt 2 ended');
      expect(published).toMatchObject([{ topic: 'exhausted', headers: { reason } }]);
      expect([await countIn(registry), lines]).toEqual([[], []]);
    },
  );

  test('that Kafka does not acknowledge rejects and is not counted', async () => {
    const { letters, registry } = createWith(() => Promise.reject(new Error('Kafka is away')));
    await expect(letters.put(record, 'message_missing', '')).rejects.toThrow('Kafka is away');
    expect(await countIn(registry)).toEqual([]);
  });
});

function stored({ key, value, headers = {} }: OutgoingRecord) {
  return { topic: 'dead', partition: 1, offset: 7, atMs: 9, key, value, headers };
}

describe('a dead letter that is read', () => {
  test('contains the original record without the added headers', () => {
    const letter = toDeadLetter('dead', record, 'unreadable_record', 'not JSON');
    const { key, value, headers } = record;
    expect(readDeadLetter(stored(letter))).toEqual({
      place: '1:7',
      atMs: 9,
      reason: 'unreadable_record',
      detail: 'not JSON',
      source: { topic: 'retry-due', place: '3:42' },
      record: { key, value, headers },
      cutFromBytes: null,
    });
  });

  test('of a record that was cut has its beginning and its original length', () => {
    const large = { ...record, key: 'k'.repeat(5_000), value: Buffer.alloc(1_000_000, 7) };
    const letter = cutDeadLetter('dead', large, 'unreadable_record', 'not JSON');
    const read = readDeadLetter(stored(letter));
    expect(read).toMatchObject({ cutFromBytes: 1_000_000, source: { place: '3:42' } });
    expect(read.record.value).toEqual(Buffer.alloc(65_536, 7));
    expect(read.record.key).toHaveLength(256);
    expect(read.record.headers).toEqual({});
  });

  test('does not confuse its own headers with headers of the record that have the same names', () => {
    const odd = {
      ...record,
      headers: { ...record.headers, 'cut-from-bytes': '9', reason: 'mine' },
    };
    const read = readDeadLetter(stored(toDeadLetter('dead', odd, 'message_missing', '')));
    expect(read).toMatchObject({ cutFromBytes: null, reason: 'message_missing' });
    expect(read.record.headers).toEqual(record.headers);
  });

  test('that another program wrote has an empty reason and source', () => {
    const foreign = stored({ topic: 'dead', key: '', value: Buffer.alloc(0) });
    expect(readDeadLetter(foreign)).toMatchObject({
      reason: '',
      source: { topic: '', place: '' },
    });
  });
});

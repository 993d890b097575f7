import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createDeadLetters } from './dead-letters.ts';
import type { LogRecord, OutgoingRecord } from '../kafka/record-log.ts';
import { createLogger } from '../service/logger.ts';

const record: LogRecord = {
  topic: 'retry-due',
  partition: 3,
  offset: 42,
  key: 'wh_1',
  value: Buffer.from([0xff, 0x0a]),
  isInherited: false,
  headers: { requestId: 'request-1', 'due-at': '5' },
};

function createWith(publish: (records: readonly OutgoingRecord[]) => Promise<void>) {
  const registry = new Registry();
  const unused = () => Promise.reject(new Error('not used here'));
  const records = { publish, consume: unused, close: unused, isConnected: () => true };
  const logger = createLogger('test', 'silent');
  return { registry, letters: createDeadLetters('dead', { records, logger, registry }) };
}

/** As kafkajs wraps what a broker answered. */
const tooLarge = (): Error =>
  new Error('refused', { cause: Object.assign(new Error(), { type: 'MESSAGE_TOO_LARGE' }) });

const countIn = async (registry: Registry) =>
  (await registry.getSingleMetric('posthorn_dead_letter_records_total')?.get())?.values ?? [];

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

  test('that Kafka does not acknowledge rejects and is not counted', async () => {
    const { letters, registry } = createWith(() => Promise.reject(new Error('Kafka is away')));
    await expect(letters.put(record, 'message_missing', '')).rejects.toThrow('Kafka is away');
    expect(await countIn(registry)).toEqual([]);
  });
});

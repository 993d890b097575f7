import { describe, expect, test } from '@jest/globals';
import { recordsFrom, type PartitionAnswer } from './fetched-records.ts';

type Batch = NonNullable<PartitionAnswer['records']>[number];

const CONTROL = 0b10_0000;

/** A batch with records at these offsets that ends at `last`, which compaction may have deleted. */
function batchOf(offsets: number[], last: number, attributes = 0): Batch {
  const first = offsets[0] ?? last;
  const records = offsets.map((offset) => ({
    length: 0,
    attributes: 0,
    timestampDelta: BigInt(offset),
    offsetDelta: offset - first,
    key: Buffer.from(`k${offset}`),
    value: Buffer.from(`v${offset}`),
    headers: [[Buffer.from('requestId'), Buffer.from(`r${offset}`)]],
  }));
  // Only these members of a batch are read.
  return {
    firstOffset: BigInt(first),
    firstTimestamp: 1_000n,
    lastOffsetDelta: last - first,
    attributes,
    records,
  } as unknown as Batch;
}

const answerOf = (records: Batch[] | null): PartitionAnswer =>
  ({ records }) as unknown as PartitionAnswer;

const offsetsOf = (answer: PartitionAnswer, position: number): string[] =>
  recordsFrom(answer, position).messages.map(({ offset }) => offset);

describe('the response to a fetch', () => {
  test('gives each record with its time, key, value and headers', () => {
    const [message] = recordsFrom(answerOf([batchOf([7], 7)]), 7).messages;
    expect(message).toEqual({
      offset: '7',
      timestamp: '1007',
      key: Buffer.from('k7'),
      value: Buffer.from('v7'),
      headers: { requestId: 'r7' },
    });
  });

  test('keeps both values of a header that comes twice, whatever its name', () => {
    const batch = batchOf([7], 7);
    const pairs = ['twice', '__proto__'].flatMap((name) => [`${name}=a`, `${name}=b`]);
    const [record] = batch.records;
    if (record) {
      record.headers = pairs.map((pair) => {
        const [name = '', value = ''] = pair.split('=');
        return [Buffer.from(name), Buffer.from(value)];
      });
    }
    const [message] = recordsFrom(answerOf([batch]), 7).messages;
    expect(Object.entries(message?.headers ?? {})).toEqual([
      ['twice', 'a,b'],
      ['__proto__', 'a,b'],
    ]);
  });

  test('gives no record before the position, although a broker sends whole batches', () => {
    const answer = answerOf([batchOf([5, 6, 7], 7), batchOf([8, 9], 9)]);
    expect(offsetsOf(answer, 7)).toEqual(['7', '8', '9']);
    expect(recordsFrom(answer, 7).next).toBe(10);
  });

  test('moves the position past control batches and deleted records', () => {
    const answer = answerOf([batchOf([5], 9), batchOf([10], 10, CONTROL)]);
    expect(offsetsOf(answer, 5)).toEqual(['5']);
    expect(recordsFrom(answer, 5).next).toBe(11);
    expect(recordsFrom(answer, 6)).toEqual({ messages: [], next: 11 });
  });

  test('may hold no record', () => {
    expect(recordsFrom(answerOf(null), 3)).toEqual({ messages: [], next: 3 });
  });
});

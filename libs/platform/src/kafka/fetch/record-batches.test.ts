import { describe, expect, test } from '@jest/globals';
import { compressionsAlgorithms } from '@platformatic/kafka';
import fc from 'fast-check';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import {
  endOfTransaction,
  recordBatchBytes,
  type WrittenBatch,
  type WrittenRecord,
} from '../../../../../test/support/kafka/record-batch-bytes.ts';
import {
  type AbortedTransaction,
  createWork,
  decodeRecordSet,
  type RecordSet,
  roomFor,
} from './record-batches.ts';

const { snappy, lz4 } = compressionsAlgorithms;
const CODECS = [
  ['nothing', 0, (bytes: Buffer) => bytes],
  ['gzip', 1, (bytes: Buffer) => gzipSync(bytes)],
  ['snappy', 2, (bytes: Buffer) => Buffer.from(snappy.compressSync(bytes))],
  ['lz4', 3, (bytes: Buffer) => Buffer.from(lz4.compressSync(bytes))],
  ['zstd', 4, (bytes: Buffer) => zstdCompressSync(bytes)],
] as const;

const value = (n: number): WrittenRecord => ({ value: `{"n":${n}}` });
const values = (from: number, to: number): WrittenRecord[] =>
  Array.from({ length: to - from }, (_, n) => value(from + n));

/** Decodes the answer about a single partition. */
const decode = (bytes: Buffer, changed: Partial<RecordSet> = {}) => {
  const limits = { room: roomFor(1), work: createWork() };
  return decodeRecordSet({
    bytes,
    fetchOffset: 0,
    endOffset: 1_000,
    aborted: [],
    ...limits,
    ...changed,
  });
};

/** What is handed over: the number of the record, or why and where there is none. */
async function shown(
  batches: readonly (WrittenBatch | Buffer)[],
  changed: Partial<RecordSet> = {},
): Promise<unknown[]> {
  const bytes = batches.map((each) => (Buffer.isBuffer(each) ? each : recordBatchBytes(each)));
  const records = await decode(Buffer.concat(bytes), changed);
  return records.map(({ offset, value: found, isControlRecord, unreadable }) => {
    if (unreadable) return [unreadable.firstOffset, unreadable.lastOffset, unreadable.why];
    return isControlRecord ? `nothing at ${offset}` : `${offset} ${String(found)}`;
  });
}

describe('a record', () => {
  test('has its offset, time, key, value and headers, whatever their names', async () => {
    const headers = [
      ['constructor', 'a'],
      ['__proto__', 'b'],
      ['twice', '1'],
      ['twice', null],
      ['none', null],
    ] as const;
    const records = [{ key: 'k', value: 'v', headers }, {}];
    const bytes = recordBatchBytes({ firstOffset: 7, records, timestampMs: 1_234 });
    const [first, second] = await decode(bytes);
    expect(first).toMatchObject({ offset: '7', timestamp: '1234' });
    expect([String(first?.key), String(first?.value)]).toEqual(['k', 'v']);
    const found = Object.entries(first?.headers ?? {}).map(([name, each]) => [name, String(each)]);
    expect(found).toEqual([
      ['constructor', 'a'],
      ['__proto__', 'b'],
      ['twice', '1,'],
      ['none', 'null'],
    ]);
    expect(second).toMatchObject({ offset: '8', key: null, value: null });
  });

  test('of 100 headers is read, and of more is refused without reading them', async () => {
    const headed = (count: number): WrittenRecord => ({
      value: '{}',
      headers: Array.from({ length: count }, (_, n) => [`h${n}`, null]),
    });
    expect(
      await shown([{ records: [headed(100), headed(101), headed(100_000), value(4)] }]),
    ).toEqual([
      '0 {}',
      [1, 1, 'has 101 headers, more than 100'],
      [2, 2, 'has 100000 headers, more than 100'],
      '3 {"n":4}',
    ]);
  });

  test('a record with 64 KiB of headers is refused', async () => {
    const large = { value: '{}', headers: [['large', 'x'.repeat(65_536)]] as const };
    expect(await shown([{ records: [large, value(1)] }])).toEqual([
      [0, 0, 'has more than 65536 bytes of headers'],
      '1 {"n":1}',
    ]);
  });
});

describe('a batch', () => {
  test.each(CODECS)('packed with %s is read', async (_name, codec, pack) => {
    expect(await shown([{ firstOffset: 3, records: values(0, 3), codec, pack }])).toEqual([
      '3 {"n":0}',
      '4 {"n":1}',
      '5 {"n":2}',
    ]);
  });

  test('of several frames of zstd is read whole, and frames of other programs are passed', async () => {
    const other = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9]);
    const pack = (bytes: Buffer): Buffer =>
      Buffer.concat([
        zstdCompressSync(bytes.subarray(0, 9)),
        other,
        zstdCompressSync(bytes.subarray(9)),
      ]);
    expect(await shown([{ records: values(0, 2), codec: 4, pack }])).toEqual([
      '0 {"n":0}',
      '1 {"n":1}',
    ]);
  });

  test('is read from the fetch offset on', async () => {
    const batches = [{ records: values(0, 5) }, { firstOffset: 5, records: values(5, 7) }];
    expect(await shown(batches, { fetchOffset: 4 })).toEqual([
      '4 {"n":4}',
      '5 {"n":5}',
      '6 {"n":6}',
    ]);
    expect(await shown(batches, { fetchOffset: 6 })).toEqual(['6 {"n":6}']);
  });

  test('of which compaction has removed the last records has nothing at its end', async () => {
    expect(await shown([{ records: values(0, 2), span: 5 }])).toEqual([
      '0 {"n":0}',
      '1 {"n":1}',
      'nothing at 4',
    ]);
  });

  test('that the broker has cut off is fetched again', async () => {
    const next = recordBatchBytes({ firstOffset: 1, records: values(1, 9) });
    for (const length of [0, 8, 16, 17, 60, next.length - 1]) {
      expect(await shown([{ records: [value(0)] }, next.subarray(0, length)])).toEqual([
        '0 {"n":0}',
      ]);
    }
  });

  test('hands over 2,000 records at a time, however many it has', async () => {
    const batch = { records: values(0, 5_000), codec: 1, pack: (bytes: Buffer) => gzipSync(bytes) };
    const first = await shown([batch]);
    expect([first.length, first.at(-1)]).toEqual([2_000, '1999 {"n":1999}']);
    const last = await shown([batch], { fetchOffset: 4_000 });
    expect([last.length, last[0], last.at(-1)]).toEqual([
      1_000,
      '4000 {"n":4000}',
      '4999 {"n":4999}',
    ]);
  });

  test('hands over two megabytes at a time', async () => {
    const large = Array.from({ length: 30 }, () => ({ value: 'x'.repeat(262_144) }));
    const pack = (bytes: Buffer): Buffer => gzipSync(bytes);
    expect(await shown([{ records: large, codec: 1, pack }])).toHaveLength(8);
  });
});

describe('an answer', () => {
  test('hands over no more for many partitions than for a few', () => {
    expect(roomFor(1)).toEqual({ records: 2_000, bytes: 2_097_152 });
    expect(roomFor(100)).toEqual({ records: 200, bytes: 104_858 });
    expect(roomFor(100_000)).toEqual({ records: 1, bytes: 105 });
  });

  test('unpacks 64 MiB, and what is left is fetched again', async () => {
    const work = { bytes: 1_000 };
    const packed = { records: values(0, 200), codec: 1, pack: (bytes: Buffer) => gzipSync(bytes) };
    const next = { ...packed, firstOffset: 200 };
    expect(await shown([packed, next], { work })).toHaveLength(200);
    expect(await shown([next], { work })).toEqual([]);
  });

  test('refuses a record of more than 2 MiB without a copy of it', async () => {
    const large = { value: Buffer.alloc(2_097_152, 32) };
    expect(await shown([{ records: [large, value(1)] }])).toEqual([
      [0, 0, 'is larger than 2 MiB'],
      '1 {"n":1}',
    ]);
  });
});

describe('a batch that cannot be read is one refusal, and what follows is read:', () => {
  const after = { firstOffset: 100, records: [value(100)] };

  test('with a wrong checksum', async () => {
    const broken = recordBatchBytes({ records: values(0, 100) });
    broken.writeUInt8(broken.readUInt8(70) ^ 1, 70);
    expect(await shown([broken, after])).toEqual([
      [0, 99, 'has a wrong checksum'],
      '100 {"n":100}',
    ]);
  });

  test.each(CODECS.slice(1))('corrupt %s', async (name, codec, _pack) => {
    const records = values(0, 100);
    const pack = (): Buffer => Buffer.from('this is nothing that was packed');
    expect(await shown([{ records, codec, pack }, after])).toEqual([
      [0, 99, expect.stringContaining(`cannot be unpacked: its ${name}`)],
      '100 {"n":100}',
    ]);
  });

  test('an unknown codec', async () => {
    expect(await shown([{ records: values(0, 100), codec: 7 }, after])).toEqual([
      [0, 99, 'cannot be unpacked: its codec 7 is unknown'],
      '100 {"n":100}',
    ]);
  });

  test.each(CODECS.slice(1))('more than 64 MiB of %s', async (_name, codec, pack) => {
    const records = Array.from({ length: 260 }, () => ({ value: Buffer.alloc(262_144, 32) }));
    const next = { firstOffset: 260, records: [value(1)] };
    const bytes = Buffer.concat([
      recordBatchBytes({ records, codec, pack }),
      recordBatchBytes(next),
    ]);
    const refused = [
      0,
      259,
      'cannot be unpacked: it has more than 67108864 bytes when it is unpacked',
    ];
    // It was the work of a whole answer: what is packed behind it is fetched again, and what is not is handed over.
    expect(await shown([bytes])).toEqual([refused, '260 {"n":1}']);
    const packed = recordBatchBytes({ firstOffset: 261, records: [value(2)], codec, pack });
    expect(await shown([bytes, packed])).toEqual([refused, '260 {"n":1}']);
    expect(await shown([bytes, packed], { fetchOffset: 261 })).toEqual(['261 {"n":2}']);
  });

  test('a wrong checksum, whose last offset is not believed', async () => {
    const broken = recordBatchBytes({ records: values(0, 100) });
    broken.writeInt32BE(1_000_000_000, 23);
    expect(await shown([broken, after])).toEqual([
      [0, 99, 'has a wrong checksum'],
      '100 {"n":100}',
    ]);
    expect(await shown([broken])).toEqual([[0, 999, 'has a wrong checksum']]);
  });

  test('more records than 10,000, of fewer than 32 bytes each', async () => {
    const tiny = (count: number): WrittenBatch => ({
      records: Array.from({ length: count }, () => ({})),
      codec: 1,
      pack: (bytes) => gzipSync(bytes),
    });
    expect(await shown([tiny(10_000)])).toHaveLength(2_000);
    expect(await shown([tiny(10_001), { firstOffset: 10_001, records: [value(1)] }])).toEqual([
      [0, 10_000, expect.stringContaining('is one batch of 10001 records in ')],
      '10001 {"n":1}',
    ]);
  });

  test('fewer records than it says', async () => {
    expect(await shown([{ records: values(0, 2), count: 100 }, after])).toEqual([
      '0 {"n":0}',
      '1 {"n":1}',
      [2, 99, 'is where 98 of the 100 records of a batch are missing'],
      '100 {"n":100}',
    ]);
  });

  test('the message formats of before Kafka 0.11', async () => {
    const old = (offset: number, version: number): Buffer => {
      const bytes = Buffer.alloc(40);
      bytes.writeBigInt64BE(BigInt(offset), 0);
      bytes.writeInt32BE(28, 8);
      bytes.writeInt8(version, 16);
      return bytes;
    };
    expect(await shown([old(98, 0), old(99, 1), after])).toEqual([
      [98, 98, 'has the message format 0, which producers before Kafka 0.11 write'],
      [99, 99, 'has the message format 1, which producers before Kafka 0.11 write'],
      '100 {"n":100}',
    ]);
  });
});

describe('transactions', () => {
  const [one, two] = [11, 12];
  const of = (
    firstOffset: number,
    producerId: number,
    key: Buffer | null = null,
  ): WrittenBatch => ({
    firstOffset,
    producerId,
    records: [{ ...value(firstOffset), key }],
  });

  test('that were aborted leave nothing, whatever the keys of their records', async () => {
    const looksLikeAMark = Buffer.from([0, 0, 0, 0]);
    const aborted: AbortedTransaction[] = [{ producerId: one, firstOffset: 0 }];
    const batches = [
      of(0, one, looksLikeAMark),
      of(1, one),
      of(2, two, looksLikeAMark),
      endOfTransaction(3, one, false),
      of(4, one),
      endOfTransaction(5, two, true),
      endOfTransaction(6, one, true),
    ];
    expect(await shown(batches, { aborted })).toEqual([
      'nothing at 0',
      'nothing at 1',
      '2 {"n":2}',
      'nothing at 3',
      '4 {"n":4}',
      'nothing at 5',
      'nothing at 6',
    ]);
  });

  test('that were aborted one after the other, and at once, leave nothing', async () => {
    const aborted: AbortedTransaction[] = [
      { producerId: two, firstOffset: 1 },
      { producerId: one, firstOffset: 0 },
      { producerId: one, firstOffset: 4 },
    ];
    const batches = [
      of(0, one),
      of(1, two),
      endOfTransaction(2, one, false),
      endOfTransaction(3, two, false),
      of(4, one),
      of(5, two),
      endOfTransaction(6, one, false),
      endOfTransaction(7, two, true),
    ];
    expect(
      (await shown(batches, { aborted })).filter((each) => !String(each).startsWith('nothing')),
    ).toEqual(['5 {"n":5}']);
  });
});

describe('anything', () => {
  const batch = fc
    .record({
      records: fc.array(
        fc.record({
          key: fc.option(fc.string({ maxLength: 20 })),
          value: fc.option(fc.string({ maxLength: 200 })),
          headers: fc.array(fc.tuple(fc.string(), fc.option(fc.string())), { maxLength: 5 }),
        }),
        { minLength: 1, maxLength: 20 },
      ),
      codec: fc.constantFrom(...CODECS),
    })
    .map(({ records, codec: [, codec, pack] }) => ({ records, codec, pack }));
  const change = fc.record({
    at: fc.nat(),
    bit: fc.nat(7),
    kept: fc.double({ min: 0, max: 1, noNaN: true }),
  });

  test('is read with its offsets in order, or refused, and never throws', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(batch, { minLength: 1, maxLength: 4 }),
        fc.array(change, { maxLength: 3 }),
        async (batches, changes) => {
          let firstOffset = 0;
          const written = batches.map((each) => {
            const bytes = recordBatchBytes({ ...each, firstOffset });
            firstOffset += each.records.length;
            return bytes;
          });
          let bytes = Buffer.concat(written);
          for (const { at, bit, kept } of changes) {
            const place = at % bytes.length;
            bytes.writeUInt8(bytes.readUInt8(place) ^ (1 << bit), place);
            if (kept < 0.3) bytes = bytes.subarray(0, 1 + Math.floor(kept * (bytes.length - 1)));
          }
          const found = await decode(bytes);
          if (changes.length > 0) return;
          expect(found.map(({ offset }) => Number(offset))).toEqual(
            Array.from({ length: firstOffset }, (_, n) => n),
          );
          expect(found.some(({ unreadable }) => unreadable)).toBe(false);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('that has the right checksum is read or refused too', async () => {
    const codec = fc.constantFrom(...CODECS);
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 400 }),
        codec,
        fc.nat(50),
        async (body, [, number, pack], count) => {
          const bytes = recordBatchBytes({
            codec: number,
            pack: () => pack(Buffer.from(body)),
            count,
            span: count || 1,
          });
          const found = await decode(bytes);
          const offsets = found.map(({ offset }) => Number(offset));
          expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
          expect(offsets.at(-1)).toBe(Math.max(0, count - 1));
        },
      ),
      { numRuns: 300 },
    );
  });
});

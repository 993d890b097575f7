import { expect, test } from '@jest/globals';
import { gzipSync } from 'node:zlib';
import { recordBatchBytes } from '../../../../../test/support/kafka/record-batch-bytes.ts';
import { decodeFetch } from './fetch.ts';

const int = (bits: 16 | 32 | 64, value: number): Buffer => {
  const bytes = Buffer.alloc(bits / 8);
  if (bits === 64) bytes.writeBigInt64BE(BigInt(value));
  else bytes.writeIntBE(value, 0, bits / 8);
  return bytes;
};

/** An answer of version 4 about partitions 0, 1, … of one topic. */
function answerWith(topic: string, recordSets: readonly Buffer[]): Buffer {
  const partitions = recordSets.flatMap((set, index) => [
    int(32, index),
    int(16, 0),
    int(64, 1_000_000),
    int(64, 1_000_000),
    int(32, 0),
    int(32, set.length),
    set,
  ]);
  const name = Buffer.from(topic);
  const head = [int(32, 0), int(32, 1), int(16, name.length), name, int(32, recordSets.length)];
  return Buffer.concat([...head, ...partitions]);
}

/** Returns the partitions with records. */
async function decoded(recordSets: readonly Buffer[]): Promise<number[]> {
  const { responses } = await decodeFetch(4, answerWith('t', recordSets), []);
  const partitions = responses.flatMap((topic) => topic.partitions);
  return partitions.filter(({ messages }) => messages.length > 0).map(({ partition }) => partition);
}

/** 4 MiB, packed into a few kilobytes. */
const large = recordBatchBytes({
  records: Array.from({ length: 16 }, () => ({ value: Buffer.alloc(262_144, 32) })),
  codec: 1,
  pack: (bytes) => gzipSync(bytes),
});

test('a record is handed over beside large batches of others, one or two of which are unpacked', async () => {
  const small = recordBatchBytes({ records: [{ value: '{}' }] });
  const sets = [...Array.from({ length: 12 }, () => large), small];
  const unpacked = new Set<number>();
  // By chance the one that is unpacked beyond the bound is the first or the small one: in two of 13 answers.
  for (let answers = 0; answers < 20 || unpacked.size < 2; answers += 1) {
    const found = await decoded(sets);
    expect(found).toContain(12);
    unpacked.add(found.length - 1);
  }
  expect([...unpacked].sort()).toEqual([1, 2]);
});

test('a large batch is handed over some time, however much the others have', async () => {
  const larger = recordBatchBytes({
    records: [
      ...Array.from({ length: 15 }, () => ({ value: Buffer.alloc(262_144, 32) })),
      { value: null, key: Buffer.alloc(262_144, 7) },
    ],
    codec: 1,
    pack: (bytes) => gzipSync(bytes, { level: 1 }),
  });
  expect(larger.length).toBeGreaterThan(large.length);
  const sets = [...Array.from({ length: 3 }, () => large), larger];
  const found = new Set<number>();
  // By chance one of four answers has it.
  for (let answers = 0; answers < 200 && !found.has(3); answers += 1) {
    for (const partition of await decoded(sets)) found.add(partition);
  }
  expect(found).toContain(3);
});

test('many plain records are handed over beside packed batches that have fewer bytes', async () => {
  const plain = recordBatchBytes({
    records: Array.from({ length: 100 }, () => ({ value: Buffer.alloc(1_024, 32) })),
  });
  expect(plain.length).toBeGreaterThan(large.length);
  const sets = [...Array.from({ length: 11 }, () => large), plain];
  expect(await decoded(sets)).toContain(11);
});

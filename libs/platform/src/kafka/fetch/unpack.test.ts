import { describe, expect, test } from '@jest/globals';
import { compressionsAlgorithms } from '@platformatic/kafka';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { readLz4, readSnappy } from './unpack.ts';

const bytes = (...parts: (number | string)[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from([part]))),
  );
const int32 = (value: number): string => String.fromCharCode(0, 0, 0, value);
const SNAPPY_JAVA = Buffer.concat([Buffer.from('82534e4150505900', 'hex'), Buffer.alloc(8)]);
const NOISE = createHash('shake256', { outputLength: 70_000 }).digest();
const LZ4_MAGIC = [0x04, 0x22, 0x4d, 0x18];

describe('snappy', () => {
  // The literal `abcd`, then two copies of the four bytes before: their distance is written in one byte, and in two.
  const block = bytes(12, 3 << 2, 'abcd', 1, 4, (3 << 2) | 2, 4, 0);

  test('reads literals and both kinds of copies, of one block or of those of snappy-java', async () => {
    expect(String(await readSnappy(block))).toBe('abcdabcdabcd');
    const framed = Buffer.concat([SNAPPY_JAVA, bytes(int32(block.length)), block]);
    const twice = Buffer.concat([framed, bytes(int32(block.length)), block]);
    expect(String(await readSnappy(twice))).toBe('abcdabcdabcdabcdabcdabcd');
  });

  test('reads a long literal and a copy that overlaps with itself', async () => {
    const long = 'x'.repeat(100);
    const block = bytes(102, 60 << 2, 99, long, (1 << 2) | 2, 1, 0);
    expect(String(await readSnappy(block))).toBe('x'.repeat(102));
  });
});

describe('lz4', () => {
  test('reads compressed and stored blocks, with every optional field', async () => {
    const compressed = bytes(0x41, 'abcd', 4, 0, 0x10, 'e');
    const all = bytes(...LZ4_MAGIC, 0x7c, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const block = bytes(compressed.length, 0, 0, 0);
    const stored = bytes(2, 0, 0, 0x80, 'fg', 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1);
    const frame = Buffer.concat([all, block, compressed, bytes(1, 1, 1, 1), stored]);
    expect(String(await readLz4(frame))).toBe('abcdabcdaefg');
  });

  test('reads frames behind each other', async () => {
    const frame = bytes(...LZ4_MAGIC, 0x60, 0x40, 0, 1, 0, 0, 0x80, 'a', 0, 0, 0, 0);
    expect(String(await readLz4(Buffer.concat([frame, frame])))).toBe('aa');
  });
});

describe.each([
  ['snappy', readSnappy, compressionsAlgorithms.snappy],
  ['lz4', readLz4, compressionsAlgorithms.lz4],
])('%s', (_name, read, other) => {
  test('reads what another implementation writes, over blocks and with copies of any distance', async () => {
    // Up to 750,000 bytes, so that there are several blocks of 65,536.
    const bytesUpTo = (max: number) => fc.integer({ max, min: 1 });
    const repeated = fc
      .tuple(bytesUpTo(NOISE.length), bytesUpTo(150_000))
      .map(([distance, length]) => Buffer.alloc(length, NOISE.subarray(0, distance)));
    const content = fc
      .array(repeated, { minLength: 1, maxLength: 5 })
      .map((all) => Buffer.concat(all));
    await fc.assert(
      fc.asyncProperty(content, async (expected) => {
        expect((await read(other.compressSync(expected))).equals(expected)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test('is corrupt when anything is missing at its end', async () => {
    const whole = other.compressSync(Buffer.from(`{"text":"${'posthorn '.repeat(20)}","n":1}`));
    for (let length = 1; length < whole.length; length += 1) {
      await expect(read(whole.subarray(0, length))).rejects.toThrow('it is corrupt');
    }
  });

  test('of anything ends, with an error where it is corrupt', async () => {
    const begins = fc.constantFrom(
      bytes(),
      SNAPPY_JAVA,
      bytes(...LZ4_MAGIC, 0x60, 0x40, 0, 20, 0, 0, 0),
    );
    await fc.assert(
      fc.asyncProperty(begins, fc.uint8Array({ maxLength: 60 }), async (begin, rest) => {
        try {
          expect(await read(Buffer.concat([begin, rest]))).toBeInstanceOf(Buffer);
        } catch (error) {
          expect((error as Error).message).toMatch(/^it (is corrupt|has more than)/);
        }
      }),
    );
  });
});

test.each<[string, () => Promise<Buffer>]>([
  ['a length of 4 GiB', () => readSnappy(bytes(255, 255, 255, 255, 15, 0, 'a'))],
  ['a length that does not end', () => readSnappy(Buffer.alloc(1_048_576, 0x80))],
  ['a literal of 4 GiB', () => readSnappy(bytes(1, 63 << 2, 255, 255, 255, 255, 'a'))],
  ['a block of 4 GiB', () => readSnappy(Buffer.concat([SNAPPY_JAVA, Buffer.alloc(4, 255)]))],
  ['more bytes than its length', () => readSnappy(bytes(1, 1 << 2, 'ab'))],
  ['bytes from before the beginning', () => readSnappy(bytes(5, 0, 'a', 1, 2))],
])('Snappy is corrupt with %s', async (_name, read) => {
  await expect(read()).rejects.toThrow('it is corrupt');
});

test('No more than 64 MiB are decompressed, of all blocks of snappy-java', async () => {
  const block = compressionsAlgorithms.snappy.compressSync(Buffer.alloc(16_777_216));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(block.length);
  const blocks = Array.from({ length: 5 }, () => [size, block]).flat();
  const framed = Buffer.concat([SNAPPY_JAVA, ...blocks]);
  await expect(readSnappy(framed)).rejects.toThrow('it has more than 67108864 bytes');
});

test('No more than 64 MiB are decompressed, of a block of lz4', async () => {
  // A match of 255 bytes for each byte.
  const length = Buffer.alloc(300_000, 255);
  const block = Buffer.concat([bytes(0x1f, 'a', 1, 0), length, bytes(0, 0)]);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(block.length);
  const frame = Buffer.concat([bytes(...LZ4_MAGIC, 0x60, 0x40, 0), size, block]);
  await expect(readLz4(frame)).rejects.toThrow('it has more than 67108864 bytes');
});

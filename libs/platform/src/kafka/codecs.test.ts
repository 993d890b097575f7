import { describe, expect, test } from '@jest/globals';
import { compressionsAlgorithms } from '@platformatic/kafka';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { readLz4, readSnappy } from './codecs.ts';

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

  test('reads literals and both kinds of copies, of one block or of those of snappy-java', () => {
    expect(readSnappy(block).toString()).toBe('abcdabcdabcd');
    const framed = Buffer.concat([SNAPPY_JAVA, bytes(int32(block.length)), block]);
    const twice = Buffer.concat([framed, bytes(int32(block.length)), block]);
    expect(readSnappy(twice).toString()).toBe('abcdabcdabcdabcdabcdabcd');
  });

  test('reads a long literal and a copy that overlaps with itself', () => {
    const long = 'x'.repeat(100);
    expect(readSnappy(bytes(102, 60 << 2, 99, long, (1 << 2) | 2, 1, 0)).toString()).toBe(
      'x'.repeat(102),
    );
  });
});

describe('lz4', () => {
  test('reads compressed and stored blocks, with every optional field', () => {
    const compressed = bytes(0x41, 'abcd', 4, 0, 0x10, 'e');
    const all = bytes(...LZ4_MAGIC, 0x7c, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const block = bytes(compressed.length, 0, 0, 0);
    const stored = bytes(2, 0, 0, 0x80, 'fg', 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1);
    const frame = Buffer.concat([all, block, compressed, bytes(1, 1, 1, 1), stored]);
    expect(readLz4(frame).toString()).toBe('abcdabcdaefg');
  });

  test('reads frames behind each other', () => {
    const frame = bytes(...LZ4_MAGIC, 0x60, 0x40, 0, 1, 0, 0, 0x80, 'a', 0, 0, 0, 0);
    expect(readLz4(Buffer.concat([frame, frame])).toString()).toBe('aa');
  });
});

describe.each([
  ['snappy', readSnappy, compressionsAlgorithms.snappy],
  ['lz4', readLz4, compressionsAlgorithms.lz4],
])('%s', (_name, read, other) => {
  test('reads what another implementation writes, over blocks and with copies of any distance', () => {
    // Up to 750,000 bytes, so that there are several blocks of 65,536.
    const bytesUpTo = (max: number) => fc.integer({ max, min: 1 });
    const repeated = fc
      .tuple(bytesUpTo(NOISE.length), bytesUpTo(150_000))
      .map(([distance, length]) => Buffer.alloc(length, NOISE.subarray(0, distance)));
    const content = fc
      .array(repeated, { minLength: 1, maxLength: 5 })
      .map((all) => Buffer.concat(all));
    fc.assert(
      fc.property(content, (expected) => {
        expect(read(other.compressSync(expected)).equals(expected)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test('is corrupt when anything is missing at its end', () => {
    const whole = other.compressSync(Buffer.from(`{"text":"${'posthorn '.repeat(20)}","n":1}`));
    for (let length = 1; length < whole.length; length += 1) {
      expect(() => read(whole.subarray(0, length))).toThrow('a compressed batch is corrupt');
    }
  });

  test('of anything ends, with an error where it is corrupt', () => {
    const begins = fc.constantFrom(
      bytes(),
      SNAPPY_JAVA,
      bytes(...LZ4_MAGIC, 0x60, 0x40, 0, 20, 0, 0, 0),
    );
    fc.assert(
      fc.property(begins, fc.uint8Array({ maxLength: 60 }), (begin, rest) => {
        try {
          expect(read(Buffer.concat([begin, rest]))).toBeInstanceOf(Buffer);
        } catch (error) {
          expect((error as Error).message).toMatch(/^a compressed batch /);
        }
      }),
    );
  });
});

test.each<[string, () => Buffer]>([
  ['a length of 4 GiB', () => readSnappy(bytes(255, 255, 255, 255, 15, 0, 'a'))],
  ['a length that does not end', () => readSnappy(Buffer.alloc(1_048_576, 0x80))],
  ['a literal of 4 GiB', () => readSnappy(bytes(1, 63 << 2, 255, 255, 255, 255, 'a'))],
  ['a block of 4 GiB', () => readSnappy(Buffer.concat([SNAPPY_JAVA, Buffer.alloc(4, 255)]))],
  ['more bytes than its length', () => readSnappy(bytes(1, 1 << 2, 'ab'))],
  ['bytes from before the beginning', () => readSnappy(bytes(5, 0, 'a', 1, 2))],
])('Snappy is corrupt with %s', (_name, read) => {
  expect(read).toThrow('a compressed batch is corrupt');
});

test('No more than 64 MiB are decompressed, of all blocks of snappy-java', () => {
  const block = compressionsAlgorithms.snappy.compressSync(Buffer.alloc(16_777_216));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(block.length);
  const blocks = Array.from({ length: 5 }, () => [size, block]).flat();
  const framed = Buffer.concat([SNAPPY_JAVA, ...blocks]);
  expect(() => readSnappy(framed)).toThrow('has more than 67108864 bytes');
});

test('No more than 64 MiB are decompressed, of a block of lz4', () => {
  // A match of 255 bytes for each byte.
  const length = Buffer.alloc(300_000, 255);
  const block = Buffer.concat([bytes(0x1f, 'a', 1, 0), length, bytes(0, 0)]);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(block.length);
  const frame = Buffer.concat([bytes(...LZ4_MAGIC, 0x60, 0x40, 0), size, block]);
  expect(() => readLz4(frame)).toThrow('has more than 67108864 bytes');
});

import kafkajs from 'kafkajs';
import { promisify } from 'node:util';
import { unzip, zstdDecompress } from 'node:zlib';

/*
 * Kafkajs reads gzip only: a batch that was compressed otherwise ends the consumer, with all of its topics. Posthorn
 * writes without compression, but the producers of ingested topics are others, and choose what they like.
 *
 * `@platformatic/wasm-utils` 0.2.1 decompresses snappy and lz4 too, 1 MiB of JSON in 0.8 ms instead of 3 to 4. But it
 * bounds no result: 1 MiB of lz4 became 256 MiB, and a snappy header of 6 bytes took 2 GiB. Its memory never shrinks;
 * each truncated lz4 frame of 16 MiB leaked 28. It drops lz4 frames behind the first, and each fault is `unreachable`.
 */

/**
 * The most bytes of one batch, decompressed. A broker bounds the compressed ones, 1 MiB by default, which may become a
 * thousand times as many.
 */
const MAX_BYTES = 67_108_864;

const { CompressionCodecs, CompressionTypes } = kafkajs;

const unzipAsync = promisify(unzip);
const zstdAsync = promisify(zstdDecompress);

/** Makes every consumer of this process read all four codecs of Kafka. */
export function readAllCodecs(): void {
  const bound = { maxOutputLength: MAX_BYTES };
  const gzip = CompressionCodecs[CompressionTypes.GZIP]() as object;
  CompressionCodecs[CompressionTypes.GZIP] = () => ({
    ...gzip,
    decompress: (bytes: Buffer) => unzipAsync(bytes, bound),
  });
  CompressionCodecs[CompressionTypes.Snappy] = () =>
    onlyReading((bytes) => Promise.resolve(readSnappy(bytes)));
  CompressionCodecs[CompressionTypes.LZ4] = () =>
    onlyReading((bytes) => Promise.resolve(readLz4(bytes)));
  CompressionCodecs[CompressionTypes.ZSTD] = () => onlyReading((bytes) => zstdAsync(bytes, bound));
}

function onlyReading(decompress: (bytes: Buffer) => Promise<Buffer>) {
  const compress = (): Promise<never> => Promise.reject(new Error('cannot write this codec'));
  return { compress, decompress };
}

/** Decompressed bytes that grow, and from which later ones are copied. */
class Output {
  #bytes = Buffer.allocUnsafe(65_536);
  #length = 0;

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  append(bytes: Buffer): void {
    this.#reserve(bytes.length);
    this.#length += bytes.copy(this.#bytes, this.#length);
  }

  /** Appends `length` bytes that begin `distance` bytes before the end. They may overlap with what is appended. */
  repeat(distance: number, length: number): void {
    if (distance === 0 || distance > this.#length) throw corrupt();
    this.#reserve(length);
    const bytes = this.#bytes;
    const from = this.#length - distance;
    let at = this.#length;
    this.#length += length;
    // A loop is faster for a few bytes, which most copies have.
    if (length < 32) for (; at < this.#length; at += 1) bytes[at] = bytes[at - distance] ?? 0;
    // Where they overlap, each call doubles the bytes that the next one can copy.
    while (at < this.#length) {
      const end = Math.min(at, from + this.#length - at);
      bytes.copyWithin(at, from, end);
      at += end - from;
    }
  }

  #reserve(length: number): void {
    const needed = this.#length + length;
    if (needed > MAX_BYTES) throw new Error(`a compressed batch has more than ${MAX_BYTES} bytes`);
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length));
    this.bytes().copy(larger);
    this.#bytes = larger;
  }
}

const corrupt = (): Error => new Error('a compressed batch is corrupt');

/** Compressed bytes that are read from the beginning to the end. Throws where they end too early. */
class Input {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  hasMore(): boolean {
    return this.#at < this.#bytes.length;
  }

  byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw corrupt();
    this.#at += 1;
    return byte;
  }

  /** The lowest byte is first. */
  number(length: number): number {
    let number = 0;
    for (let unit = 1; unit < 256 ** length; unit *= 256) number += unit * this.byte();
    return number;
  }

  take(length: number): Buffer {
    const taken = this.#bytes.subarray(this.#at, this.#at + length);
    if (taken.length < length) throw corrupt();
    this.#at += length;
    return taken;
  }
}

/** snappy-java, which Java clients and brokers use, writes blocks behind this and two versions of four bytes each. */
const SNAPPY_JAVA = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const SNAPPY_JAVA_HEADER_BYTES = 16;

/** Of snappy-java, or one block as other clients write it (google/snappy, format_description.txt). */
export function readSnappy(bytes: Buffer): Buffer {
  const output = new Output();
  if (!bytes.subarray(0, SNAPPY_JAVA.length).equals(SNAPPY_JAVA)) {
    readSnappyBlock(new Input(bytes), output);
    return output.bytes();
  }
  const input = new Input(bytes);
  input.take(SNAPPY_JAVA_HEADER_BYTES);
  while (input.hasMore()) {
    const length = input.take(4).readUInt32BE(0);
    readSnappyBlock(new Input(input.take(length)), output);
  }
  return output.bytes();
}

function readSnappyBlock(input: Input, output: Output): void {
  const end = output.bytes().length + readSnappyLength(input);
  while (input.hasMore()) {
    const tag = input.byte();
    const upper = tag >> 2;
    switch (tag & 3) {
      case 0:
        output.append(input.take(1 + (upper < 60 ? upper : input.number(upper - 59))));
        break;
      case 1:
        output.repeat(((tag >> 5) << 8) + input.byte(), 4 + (upper & 7));
        break;
      case 2:
        output.repeat(input.number(2), 1 + upper);
        break;
      default:
        output.repeat(input.number(4), 1 + upper);
    }
  }
  if (output.bytes().length !== end) throw corrupt();
}

/** Seven bits are in each byte, the lowest first, and a bit that says that more follow. */
function readSnappyLength(input: Input): number {
  let length = 0;
  for (let unit = 1; ; unit *= 128) {
    const byte = input.byte();
    length += unit * (byte % 128);
    if (byte < 128) return length;
  }
}

const LZ4_MAGIC = 0x18_4d_22_04;
const LZ4_IS_STORED = 0x80_00_00_00;

/**
 * Frames (lz4/lz4, lz4_Frame_format.md). Checksums are not verified: Kafka has one of its own over the batch, and old
 * producers (message format 0) write a wrong one behind the header.
 */
export function readLz4(bytes: Buffer): Buffer {
  const input = new Input(bytes);
  const output = new Output();
  while (input.hasMore()) readLz4Frame(input, output);
  return output.bytes();
}

function readLz4Frame(input: Input, output: Output): void {
  if (input.number(4) !== LZ4_MAGIC) throw corrupt();
  const flags = input.byte();
  const has = (bit: number): boolean => (flags & bit) !== 0;
  const [hasBlockChecksums, hasLength, hasChecksum, hasDictionary] = [16, 8, 4, 1].map(has);
  // The largest size of a block, then what the flags say, then a checksum of this header.
  input.take(1 + (hasLength ? 8 : 0) + (hasDictionary ? 4 : 0) + 1);
  for (;;) {
    const size = input.number(4);
    if (size === 0) break;
    const block = input.take(size % LZ4_IS_STORED);
    if (size >= LZ4_IS_STORED) output.append(block);
    else readLz4Block(new Input(block), output);
    if (hasBlockChecksums) input.take(4);
  }
  if (hasChecksum) input.take(4);
}

function readLz4Block(input: Input, output: Output): void {
  for (;;) {
    const token = input.byte();
    output.append(input.take(readLz4Length(input, token >> 4)));
    // The last sequence has literals only.
    if (!input.hasMore()) return;
    const distance = input.number(2);
    output.repeat(distance, 4 + readLz4Length(input, token & 15));
  }
}

function readLz4Length(input: Input, first: number): number {
  let length = first;
  if (first < 15) return length;
  for (;;) {
    const more = input.byte();
    length += more;
    if (more < 255) return length;
  }
}

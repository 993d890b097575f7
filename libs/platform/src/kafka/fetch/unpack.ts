import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { unzip, zstdDecompress } from 'node:zlib';
import { CorruptError } from './cursor.ts';

/*
 * `@platformatic/wasm-utils` 0.2.1 decompresses snappy and lz4 too, 1 MiB of JSON in 0.8 ms instead of 3 to 4. But it
 * bounds no result: 1 MiB of lz4 became 256 MiB, and a snappy header of 6 bytes took 2 GiB. Its memory never shrinks;
 * each truncated lz4 frame of 16 MiB leaked 28. It drops lz4 frames behind the first, and each fault is `unreachable`.
 */

/**
 * The most bytes of one batch, unpacked. A broker bounds the packed ones, 1 MiB by default, which may become a thousand
 * times as many.
 */
export const MAX_UNPACKED_BYTES = 67_108_864;

/** A batch that has more bytes than that. */
export class TooLargeError extends Error {
  override readonly name = 'TooLargeError';

  constructor() {
    super(`it has more than ${MAX_UNPACKED_BYTES} bytes when it is unpacked`);
  }
}

const unzipAsync = promisify(unzip);
const zstdAsync = promisify(zstdDecompress);

interface Codec {
  name: string;
  read: (bytes: Buffer) => Promise<Buffer>;
}

/** By the number of Kafka's `attributes`. */
const CODECS: Record<number, Codec> = {
  1: { name: 'gzip', read: (bytes) => unzipAsync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES }) },
  2: { name: 'snappy', read: readSnappy },
  3: { name: 'lz4', read: readLz4 },
  4: { name: 'zstd', read: readZstd },
};

let last: Promise<unknown> = Promise.resolve();

/**
 * Calls `use` with the unpacked records of a batch; codec 0 is none. One batch of the process after the other, so that their
 * memory does not add up. Throws CorruptError or TooLargeError, and what `use` throws.
 */
export async function withUnpacked<Result>(
  codec: number,
  bytes: Buffer,
  use: (unpacked: Buffer) => Promise<Result>,
): Promise<Result> {
  if (codec === 0) return use(bytes);
  const found = CODECS[codec];
  if (!found) throw new CorruptError(`its codec ${codec} is unknown`);
  const before = last;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  last = promise;
  await before;
  try {
    return await use(await read(found, bytes));
  } finally {
    resolve(undefined);
  }
}

async function read({ name, read: readAll }: Codec, bytes: Buffer): Promise<Buffer> {
  try {
    return await readAll(bytes);
  } catch (error) {
    if (error instanceof TooLargeError) throw error;
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw new TooLargeError();
    throw new CorruptError(`its ${name} cannot be unpacked`, { cause: error });
  }
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code;

/** Unpacked bytes, or copies of a few bytes, that take about 10 ms. */
const TURN_BYTES = 2_097_152;
const TURN_STEPS = 200_000;

/** Unpacked bytes that grow, and from which later ones are copied. */
class Output {
  #bytes = Buffer.allocUnsafe(65_536);
  #length = 0;
  #steps = 0;
  #turnEnd = TURN_BYTES;

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** True once for each turn of the event loop that the work since the last one fills. */
  isTurnOver(): boolean {
    this.#steps += 1;
    const isOver = this.#steps >= TURN_STEPS || this.#length >= this.#turnEnd;
    if (isOver) [this.#steps, this.#turnEnd] = [0, this.#length + TURN_BYTES];
    return isOver;
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
    if (needed > MAX_UNPACKED_BYTES) throw new TooLargeError();
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length));
    this.bytes().copy(larger);
    this.#bytes = larger;
  }
}

const corrupt = (): Error => new CorruptError('it is corrupt');

/** Compressed bytes that are read from the beginning to the end. Throws where they end too early. */
class Input {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  at(): number {
    return this.#at;
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
export async function readSnappy(bytes: Buffer): Promise<Buffer> {
  const output = new Output();
  if (!bytes.subarray(0, SNAPPY_JAVA.length).equals(SNAPPY_JAVA)) {
    await readSnappyBlock(new Input(bytes), output);
    return output.bytes();
  }
  const input = new Input(bytes);
  input.take(SNAPPY_JAVA_HEADER_BYTES);
  while (input.hasMore()) {
    if (output.isTurnOver()) await nextTurn();
    const length = input.take(4).readUInt32BE(0);
    await readSnappyBlock(new Input(input.take(length)), output);
  }
  return output.bytes();
}

async function readSnappyBlock(input: Input, output: Output): Promise<void> {
  const end = output.bytes().length + readSnappyLength(input);
  while (input.hasMore()) {
    if (output.isTurnOver()) await nextTurn();
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
export async function readLz4(bytes: Buffer): Promise<Buffer> {
  const input = new Input(bytes);
  const output = new Output();
  while (input.hasMore()) {
    if (output.isTurnOver()) await nextTurn();
    await readLz4Frame(input, output);
  }
  return output.bytes();
}

async function readLz4Frame(input: Input, output: Output): Promise<void> {
  if (input.number(4) !== LZ4_MAGIC) throw corrupt();
  const flags = input.byte();
  const has = (bit: number): boolean => (flags & bit) !== 0;
  const [hasBlockChecksums, hasLength, hasChecksum, hasDictionary] = [16, 8, 4, 1].map(has);
  // The largest size of a block, then what the flags say, then a checksum of this header.
  input.take(1 + (hasLength ? 8 : 0) + (hasDictionary ? 4 : 0) + 1);
  for (;;) {
    if (output.isTurnOver()) await nextTurn();
    const size = input.number(4);
    if (size === 0) break;
    const block = input.take(size % LZ4_IS_STORED);
    if (size >= LZ4_IS_STORED) output.append(block);
    else await readLz4Block(new Input(block), output);
    if (hasBlockChecksums) input.take(4);
  }
  if (hasChecksum) input.take(4);
}

async function readLz4Block(input: Input, output: Output): Promise<void> {
  for (;;) {
    if (output.isTurnOver()) await nextTurn();
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

const ZSTD_MAGIC = 0xfd_2f_b5_28;
/** Frames of other programs, which are passed over: 0x184D2A50 to 0x184D2A5F. */
const ZSTD_SKIPPED = 0x18_4d_2a_50;

/** Frames behind each other; Node reads the first only (RFC 8878, section 3.1). */
export async function readZstd(bytes: Buffer): Promise<Buffer> {
  const frames: Buffer[] = [];
  let left = MAX_UNPACKED_BYTES;
  for (const frame of zstdFramesIn(bytes)) {
    const unpacked = await zstdAsync(frame, { maxOutputLength: Math.max(1, left) });
    left -= unpacked.length;
    if (left < 0) throw new TooLargeError();
    frames.push(unpacked);
  }
  return frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames);
}

/** Each is a call of the library. Producers write one, or one for each of their threads. */
const MAX_FRAMES = 1_000;

function* zstdFramesIn(bytes: Buffer): Generator<Buffer> {
  const input = new Input(bytes);
  for (let frames = 0; input.hasMore(); frames += 1) {
    if (frames === MAX_FRAMES) throw corrupt();
    const start = input.at();
    const magic = input.number(4);
    if (magic - (magic % 16) === ZSTD_SKIPPED) input.take(input.number(4));
    else if (magic === ZSTD_MAGIC) {
      passZstdFrame(input);
      yield bytes.subarray(start, input.at());
    } else throw corrupt();
  }
}

/** Section 3.1.1.1 has the header, 3.1.1.2 the blocks. */
function passZstdFrame(input: Input): void {
  const descriptor = input.byte();
  const isSingleSegment = (descriptor & 32) !== 0;
  const hasChecksum = (descriptor & 4) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  input.take((isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes);
  for (let isLast = false; !isLast;) {
    const header = input.number(3);
    isLast = (header & 1) === 1;
    // A block of one repeated byte has its unpacked size in the header.
    input.take((header & 6) === 2 ? 1 : header >> 3);
  }
  if (hasChecksum) input.take(4);
}

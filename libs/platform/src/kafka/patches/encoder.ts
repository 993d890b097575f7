import { createRequire } from 'node:module';

/** The part of kafkajs's encoder that is used here. kafkajs makes one for each request, batch, record and header. */
interface PatchedEncoder {
  /** Returns the size of the next buffer, from the bytes that it must have; called with FIRST_BYTES for the first one. */
  nextPowerOfTwo: (bytes: number) => number;
  prototype: {
    buf: Buffer;
    offset: number;
    ensureAvailable: (bytes: number) => void;
    writeUVarInt: (value: number) => unknown;
    writeVarInt: (value: number) => unknown;
    writeVarIntBytes: (value: unknown) => unknown;
  };
}

/** Stands for a header without a value, see patchEncoder. */
export const NO_VALUE = Buffer.alloc(0);

/** The size that kafkajs requests for a first buffer: it gets 512 bytes. */
const FIRST_BYTES = 511;
/** A header has about 60 bytes, and a record has four. */
const SMALL_BYTES = 64;
/** A number of 32 bits, seven in each byte. */
const MAX_VAR_INT_BYTES = 5;
const MORE = 0x80;

/**
 * kafkajs allocates 512 zeroed bytes for each header and record, grows them into zeroed copies, and allocates an array and a
 * buffer for each length. After the patch a record of 1.3 KB in a batch takes 8 µs instead of 14, alone 13 instead of 35.
 *
 * Kafkajs 2.2.4 throws for a header without a value (tulios/kafkajs#1789), because it measures null. After the patch
 * NO_VALUE, which is as long as the length of nothing, is written as null.
 */
export function patchEncoder(): void {
  const require = createRequire(import.meta.url);
  const encoder = require('kafkajs/src/protocol/encoder.js') as PatchedEncoder;
  const { prototype, nextPowerOfTwo } = encoder;
  encoder.nextPowerOfTwo = (bytes) => (bytes === FIRST_BYTES ? SMALL_BYTES : nextPowerOfTwo(bytes));
  prototype.ensureAvailable = function (bytes): void {
    const needed = this.offset + bytes;
    if (needed <= this.buf.length) return;
    const grown = Buffer.allocUnsafe(nextPowerOfTwo(needed));
    this.buf.copy(grown, 0, 0, this.offset);
    this.buf = grown;
  };
  const { writeVarIntBytes } = prototype;
  prototype.writeVarIntBytes = function (value) {
    return value === NO_VALUE ? this.writeVarInt(-1) : writeVarIntBytes.call(this, value);
  };
  prototype.writeUVarInt = function (value) {
    this.ensureAvailable(MAX_VAR_INT_BYTES);
    let left = value >>> 0;
    while (left >= MORE) {
      this.buf[this.offset++] = (left & 0x7f) | MORE;
      left >>>= 7;
    }
    this.buf[this.offset++] = left;
    return this;
  };
}

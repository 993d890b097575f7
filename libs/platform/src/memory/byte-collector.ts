/** Collects the bytes of a body that arrives in chunks from outside: a request, a response. */
export interface ByteCollector {
  /** Copies the chunk, or the beginning of it that still fits. The chunk itself may be reused. */
  add: (chunk: Uint8Array) => void;
  /** Returns how many bytes of memory `add` would allocate beyond those of `heldBytes`. */
  growthFor: (chunkBytes: number) => number;
  /** All bytes that were added, those that did not fit included. */
  receivedBytes: () => number;
  /** The size of the buffer, which may be larger than what is in it. */
  heldBytes: () => number;
  /** True when the chunks are far smaller than any program makes them; see MIN_MEAN_BYTES. */
  isShredded: () => boolean;
  /** Returns the collected bytes, not copied. */
  bytes: () => Buffer;
}

interface CollectorOptions {
  /** More is not kept. */
  maxBytes: number;
  /** The announced length, if there is one. */
  expectedBytes?: number | undefined;
  /** Chunks that may be of any size. */
  freeChunks?: number;
}

/** An announced length is believed up to here; beyond, memory is allocated as the bytes arrive. */
const MAX_FIRST_BYTES = 16_384;

/**
 * Each chunk costs about 1 µs of the event loop whatever its size, and a buffer of 256 KiB of one-byte chunks 0.26 s.
 * So after the first ones the chunks must have 4 bytes in the mean: 65 ms. Programs that write JSON token by token,
 * such as Python's `iterencode`, send 5 to 6 bytes in each.
 */
const FREE_CHUNKS = 1_024;
const MIN_MEAN_BYTES = 4;

const EMPTY = Buffer.alloc(0);

/**
 * Keeps one buffer that doubles up to `maxBytes`. A chunk that is kept as it came costs about 200 bytes of heap and 530
 * of resident memory besides its content: 4,096 bytes in chunks of one byte were 2 MB.
 */
export function createByteCollector({
  maxBytes,
  expectedBytes,
  freeChunks = FREE_CHUNKS,
}: CollectorOptions): ByteCollector {
  const limit = Math.min(maxBytes, expectedBytes ?? maxBytes);
  let buffer: Buffer = EMPTY;
  let length = 0;
  let received = 0;
  let chunks = 0;

  function sizeFor(chunkBytes: number): number {
    const needed = Math.min(length + chunkBytes, limit);
    if (needed <= buffer.length) return buffer.length;
    const wished = buffer.length === 0 ? firstBytes(expectedBytes) : 2 * buffer.length;
    return Math.max(needed, Math.min(wished, limit));
  }

  return {
    add(chunk) {
      received += chunk.length;
      chunks += 1;
      const size = sizeFor(chunk.length);
      if (size > buffer.length) buffer = grown(buffer, length, size);
      const fits = Math.min(chunk.length, buffer.length - length);
      if (fits === 0) return;
      buffer.set(fits === chunk.length ? chunk : chunk.subarray(0, fits), length);
      length += fits;
    },
    growthFor: (chunkBytes) => sizeFor(chunkBytes) - buffer.length,
    receivedBytes: () => received,
    heldBytes: () => buffer.length,
    isShredded: () => chunks > freeChunks + received / MIN_MEAN_BYTES,
    bytes: () => buffer.subarray(0, length),
  };
}

const firstBytes = (expectedBytes = 0): number => Math.min(expectedBytes, MAX_FIRST_BYTES);

/** Not from Node's pool: a few bytes that are kept for long would keep 64 KiB of it. */
function grown(buffer: Buffer, length: number, size: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(size);
  larger.set(buffer.subarray(0, length));
  return larger;
}

import { VerifyError } from './verify-error.ts';

/** Bytes that may be passed to WebCrypto, which refuses shared memory. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Collects chunks in one buffer that doubles, so that a body in pieces of one byte costs no more memory than its bytes. */
export class ByteCollector {
  #buffer: Bytes = new Uint8Array(1_024);
  #length = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Throws a VerifyError `body_too_large` when the chunks are longer than `maxBytes`. */
  add(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    if (length > this.#maxBytes) throw tooLarge(this.#maxBytes);
    if (length > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(length, this.#buffer.length * 2));
      larger.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = larger;
    }
    this.#buffer.set(chunk, this.#length);
    this.#length = length;
  }

  bytes(): Bytes {
    return this.#buffer.subarray(0, this.#length);
  }
}

export const tooLarge = (maxBytes: number): VerifyError =>
  new VerifyError('body_too_large', `The body is longer than ${maxBytes} bytes.`);

/**
 * Reads the body of a request or response of `fetch`. Throws a VerifyError `body_too_large` when it is longer than
 * `maxBytes`, and what the stream throws.
 */
export async function readBytes(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Bytes> {
  const collector = new ByteCollector(maxBytes);
  const reader = body?.getReader();
  try {
    for (;;) {
      const chunk = await reader?.read();
      if (!chunk || chunk.done) return collector.bytes();
      collector.add(chunk.value);
    }
  } catch (error) {
    // The sender is told to stop; whether that works out changes nothing here.
    reader?.cancel().catch(() => undefined);
    throw error;
  }
}

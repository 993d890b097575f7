/** Bytes of Kafka that are no record batch, or end within one. */
export class CorruptError extends Error {
  override readonly name = 'CorruptError';
}

/**
 * Reads fields of Kafka's protocol, and the varints of its records (KIP-98), from the beginning to the end of some bytes.
 * Throws CorruptError where they end too early. Nothing is copied.
 */
export class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  at(): number {
    return this.#at;
  }

  left(): number {
    return this.#bytes.length - this.#at;
  }

  skip(length: number): void {
    this.#require(length);
    this.#at += length;
  }

  take(length: number): Buffer {
    const from = this.#at;
    this.skip(length);
    return this.#bytes.subarray(from, this.#at);
  }

  int8(): number {
    this.#require(1);
    const value = this.#bytes.readInt8(this.#at);
    this.#at += 1;
    return value;
  }

  int16(): number {
    this.#require(2);
    const value = this.#bytes.readInt16BE(this.#at);
    this.#at += 2;
    return value;
  }

  int32(): number {
    this.#require(4);
    const value = this.#bytes.readInt32BE(this.#at);
    this.#at += 4;
    return value;
  }

  /** Exact up to 2^53: offsets, producer ids and milliseconds are far below. */
  int64(): number {
    this.#require(8);
    const value =
      this.#bytes.readInt32BE(this.#at) * 2 ** 32 + this.#bytes.readUInt32BE(this.#at + 4);
    this.#at += 8;
    return value;
  }

  /** Reads a text of a response: its length in 16 bits, then the text. */
  string(): string {
    return this.take(this.int16()).toString();
  }

  /** Reads a number of up to ten bytes; exact up to 2^53. */
  uvarint(): number {
    let value = 0;
    for (let unit = 1; unit < 2 ** 70; unit *= 128) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new CorruptError('ends within a number');
      this.#at += 1;
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
    throw new CorruptError('a number has more than ten bytes');
  }

  /** Zigzag, else as uvarint. */
  varint(): number {
    const value = this.uvarint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** Bytes behind their length; null for a length of −1. */
  varintBytes(): Buffer | null {
    const length = this.varint();
    return length === -1 ? null : this.take(length);
  }

  /** Of a response in the flexible form (KIP-482), like the next two; null for none. */
  compactString(): string | null {
    const length = this.uvarint() - 1;
    return length < 0 ? null : this.take(length).toString();
  }

  compactArray<T>(read: () => T): T[] {
    const items: T[] = [];
    for (let left = this.uvarint() - 1; left > 0; left -= 1) items.push(read());
    return items;
  }

  /** Skips tagged fields, which later versions add. */
  tags(): void {
    for (let left = this.uvarint(); left > 0; left -= 1) {
      this.uvarint();
      this.skip(this.uvarint());
    }
  }

  #require(length: number): void {
    if (length < 0 || length > this.left()) {
      throw new CorruptError(`needs ${length} bytes where ${this.left()} are left`);
    }
  }
}

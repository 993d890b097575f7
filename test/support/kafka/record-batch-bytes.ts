import { crc32c } from '@posthorn/platform/kafka/fetch/crc32c.ts';

/** A record as a producer may write it: also one that no client library would let it. */
export interface WrittenRecord {
  key?: Buffer | string | null;
  value?: Buffer | string | null;
  headers?: readonly (readonly [name: string, value: Buffer | string | null])[];
}

export interface WrittenBatch {
  firstOffset?: number;
  records?: readonly WrittenRecord[];
  /** By the number of Kafka; `pack` compresses accordingly. */
  codec?: number;
  pack?: (bytes: Buffer) => Buffer;
  /** Of a transaction. */
  producerId?: number;
  isControl?: boolean;
  timestampMs?: number;
  /** Of how many records the batch speaks, and up to which offset it reaches; the number of records unless given. */
  count?: number;
  span?: number;
}

/** Writes a record batch of version 2 (KIP-98). */
export function recordBatchBytes({
  firstOffset = 0,
  records = [],
  codec = 0,
  pack = (bytes) => bytes,
  producerId = -1,
  isControl = false,
  timestampMs = 1_700_000_000_000,
  count = records.length,
  span = count,
}: WrittenBatch): Buffer {
  const body = pack(Buffer.concat(records.map(recordBytes)));
  const checked = Buffer.alloc(40);
  checked.writeInt16BE(codec | (producerId >= 0 ? 16 : 0) | (isControl ? 32 : 0), 0);
  checked.writeInt32BE(span - 1, 2);
  checked.writeBigInt64BE(BigInt(timestampMs), 6);
  checked.writeBigInt64BE(BigInt(timestampMs), 14);
  checked.writeBigInt64BE(BigInt(producerId), 22);
  checked.writeInt32BE(count, 36);
  const head = Buffer.alloc(21);
  head.writeBigInt64BE(BigInt(firstOffset), 0);
  head.writeInt32BE(9 + checked.length + body.length, 8);
  head.writeInt8(2, 16);
  head.writeUInt32BE(crc32c(body, crc32c(checked)), 17);
  return Buffer.concat([head, checked, body]);
}

/** The mark that ends the transaction of a producer. */
export function endOfTransaction(
  firstOffset: number,
  producerId: number,
  isCommit: boolean,
): Buffer {
  const key = Buffer.from([0, 0, 0, isCommit ? 1 : 0]);
  return recordBatchBytes({ firstOffset, producerId, isControl: true, records: [{ key }] });
}

function recordBytes(
  { key = null, value = null, headers = [] }: WrittenRecord,
  index: number,
): Buffer {
  const parts = [
    Buffer.from([0, 0]),
    varint(index),
    sized(key),
    sized(value),
    varint(headers.length),
  ];
  for (const [name, content] of headers) parts.push(sized(name), sized(content));
  const bytes = Buffer.concat(parts);
  return Buffer.concat([varint(bytes.length), bytes]);
}

function sized(part: Buffer | string | null): Buffer {
  if (part === null) return varint(-1);
  const bytes = Buffer.from(part);
  return Buffer.concat([varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value < 0 ? -2 * value - 1 : 2 * value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  return Buffer.from([...bytes, left]);
}

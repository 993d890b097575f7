import { Buffer } from 'node:buffer';

/**
 * Returns the partition in which kafkajs puts a record with this key: murmur2 without the sign bit, as the Java
 * client does.
 */
export function partitionOf(key: string, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions;
}

const SEED = 0x9747b28c;
const M = 0x5bd1e995;
const R = 24;

/** https://github.com/apache/kafka/blob/4.1/clients/src/main/java/org/apache/kafka/common/utils/Utils.java */
function murmur2(data: Buffer): number {
  const { length } = data;
  let hash = SEED ^ length;
  let at = 0;
  for (; length - at >= 4; at += 4) {
    let block = Math.imul(data.readInt32LE(at), M);
    block ^= block >>> R;
    hash = Math.imul(hash, M) ^ Math.imul(block, M);
  }
  if (at < length) {
    hash ^= data.readUIntLE(at, length - at);
    hash = Math.imul(hash, M);
  }
  hash ^= hash >>> 13;
  hash = Math.imul(hash, M);
  return hash ^ (hash >>> 15);
}

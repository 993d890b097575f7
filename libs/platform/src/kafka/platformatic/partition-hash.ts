import { compatibilityPartitioner } from '@platformatic/kafka';

/**
 * Of a key; the client takes it modulo the number of partitions. kafkajs' DefaultPartitioner and the
 * Java client do the same, so that one topic may be written by all of them. The client's own default
 * keeps the sign bit, and that gives other partitions unless their number is a power of two.
 */
export function partitionHash(key: Buffer | undefined): number {
  return compatibilityPartitioner({ topic: '' }, key);
}

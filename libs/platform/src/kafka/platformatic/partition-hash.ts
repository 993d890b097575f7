import { compatibilityPartitioner } from '@platformatic/kafka';

/**
 * Returns the hash of a key; the client takes it modulo the number of partitions. kafkajs's
 * DefaultPartitioner and the Java client do the same, so that all of them may write one topic. The
 * default of this client keeps the sign bit, which gives other partitions unless their number is a
 * power of two.
 */
export function partitionHash(key: Buffer | undefined): number {
  return compatibilityPartitioner({ topic: '' }, key);
}

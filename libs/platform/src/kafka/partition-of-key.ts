import { createRequire } from 'node:module';

const murmur2 = createRequire(import.meta.url)(
  'kafkajs/src/producer/partitioners/default/murmur2.js',
) as (key: Buffer) => number;

/** Returns the partition of a key among `partitions` partitions, as both clients do. */
export function partitionOfKey(key: string, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7f_ff_ff_ff) % partitions;
}

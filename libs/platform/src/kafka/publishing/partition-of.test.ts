import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Partitioners } from 'kafkajs';
import { partitionHash } from '../platformatic/partition-hash.ts';
import { partitionOf } from './partition-of.ts';

test('the partition of a key is the one in which both clients put its records', () => {
  const ofKafkajs = Partitioners.DefaultPartitioner();
  const keys = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' });
  fc.assert(
    fc.property(keys, fc.integer({ min: 1, max: 2_400 }), (key, partitions) => {
      const partitionMetadata = Array.from({ length: partitions }, (_, partitionId) => {
        return { partitionErrorCode: 0, partitionId, leader: 1, replicas: [1], isr: [1] };
      });
      const message = { key, value: null };
      const partition = partitionOf(key, partitions);
      expect(partition).toBe(ofKafkajs({ topic: 'a', partitionMetadata, message }));
      expect(partition).toBe(partitionHash(Buffer.from(key)) % partitions);
    }),
  );
});

import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Partitioners } from 'kafkajs';
import { partitionOf } from './partition-of.ts';

test('the partition of a key is the one in which kafkajs puts its records', () => {
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
    }),
  );
});

test('the partition of a key stays the same, so that its records keep their order over releases', () => {
  const known = ['', 'a', 'abcd', 'webhook-1'].map((key) => partitionOf(key, 12));
  expect(known).toEqual([9, 4, 8, 9]);
});

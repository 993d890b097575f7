import { describe, expect, test } from '@jest/globals';
import kafkajs from 'kafkajs';
import { partitionHash } from './partition-hash.ts';

const KEYS = [
  '',
  'a',
  'ab',
  'abc',
  'abcd',
  'wh_01JD0000000000000000000000',
  'schlüssel',
  '键',
  ...Array.from({ length: 500 }, (_, n) => `webhook-${n}`),
];

describe('the partition of a key', () => {
  test.each([1, 3, 7, 12, 50])('is the same as with kafkajs, of %i partitions', (count) => {
    const partitioner = kafkajs.Partitioners.DefaultPartitioner();
    const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({
      partitionErrorCode: 0,
      partitionId,
      leader: 1,
      replicas: [1],
      isr: [1],
    }));
    for (const key of KEYS) {
      const ofKafkajs = partitioner({ topic: 't', partitionMetadata, message: { key, value: '' } });
      expect([key, partitionHash(Buffer.from(key)) % count]).toEqual([key, ofKafkajs]);
    }
  });

  test('stays the same, so that the records of one key keep their order over releases', () => {
    const known = ['', 'a', 'abcd', 'webhook-1'].map((key) => partitionHash(Buffer.from(key)) % 12);
    expect(known).toEqual([9, 4, 8, 9]);
  });
});

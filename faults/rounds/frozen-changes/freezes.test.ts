import { expect, it } from '@jest/globals';
import mongoose from 'mongoose';
import { replyBehind } from './freezes.ts';

const { BSON, Long, Timestamp } = mongoose.mongo;
const HEADER_BYTES = 21;

it('replies to a request for changes with none, and with a token that is older than the cluster', () => {
  const command = { getMore: Long.fromNumber(42), collection: '$cmd.aggregate', $db: 'posthorn' };
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeInt32LE(7, 4);
  const request = Buffer.concat([header, BSON.serialize(command)]);
  const reply = replyBehind(request, 100_900, 101_500);
  expect([reply.readInt32LE(0), reply.readInt32LE(8)]).toEqual([reply.length, 7]);
  expect(BSON.deserialize(reply.subarray(HEADER_BYTES), { promoteLongs: false })).toMatchObject({
    cursor: {
      id: Long.fromNumber(42),
      ns: 'posthorn.$cmd.aggregate',
      nextBatch: [],
      // 99 s.
      postBatchResumeToken: { _data: '8200000063000000012B0429296E1404' },
    },
    $clusterTime: { clusterTime: new Timestamp({ t: 101, i: 1 }) },
  });
});

import { expect, test } from '@jest/globals';
import { createKeepTrying, StoppedError } from '../async/keep-trying.ts';
import { createBatchedPublisher } from './batched-publisher.ts';
import type { OutgoingRecord } from './record-log.ts';

const record = (key: string): OutgoingRecord => ({ topic: 'a', key, value: Buffer.alloc(0) });

function publisherOf(publish: (records: readonly OutgoingRecord[]) => Promise<void>) {
  const stopping = new AbortController();
  const keepTrying = createKeepTrying({
    logger: { warn: () => undefined },
    signal: stopping.signal,
    firstWaitMs: 1,
  });
  const purpose = 'publish parked records';
  return {
    stopping,
    publish: createBatchedPublisher({ records: { publish }, keepTrying, purpose }),
  };
}

test('publishes records that come together in one batch', async () => {
  const batches: string[][] = [];
  const { publish } = publisherOf((records) => {
    batches.push(records.map(({ key }) => key));
    return Promise.resolve();
  });
  await Promise.all(['1', '2', '3'].map((key) => publish(record(key))));
  expect(batches).toEqual([['1', '2', '3']]);
});

test('publishes a batch again after an outage', async () => {
  let calls = 0;
  const { publish } = publisherOf(() => {
    calls += 1;
    return calls < 3 ? Promise.reject(new Error('away')) : Promise.resolve();
  });
  await publish(record('1'));
  expect(calls).toBe(3);
});

test('rejects with StoppedError when a stop comes before Kafka has the records', async () => {
  const { publish, stopping } = publisherOf(() => Promise.reject(new Error('away')));
  const publishing = publish(record('1'));
  stopping.abort();
  await expect(publishing).rejects.toThrow(StoppedError);
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Kafka, Message, Producer } from 'kafkajs';
import { createRequire } from 'node:module';
import { connectProducer, markStored, type PatchedBroker } from './producer.ts';

const require = createRequire(import.meta.url);
const createProducer = require('kafkajs/src/producer/index.js') as (options: object) => Producer;
const { createErrorFromCode } = require('kafkajs/src/protocol/error.js') as {
  createErrorFromCode: (code: number) => Error;
};

const NOT_LEADER = 6;
const TOO_LARGE = 10;
const TOPIC = 'created';
const ignore = (): undefined => undefined;
const quiet = {
  namespace: () => quiet,
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
};

type Leaders = Record<number, number>;
type Produce = PatchedBroker['produce'];

/** Resolves when other work has run this often. */
async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await new Promise(setImmediate);
}

/** kafkajs's producer on a cluster of two brokers. The key of a record is the number of its partition. */
describe('the producer of kafkajs', () => {
  /** Partition → the broker that stores its records, and the one that kafkajs takes for it. */
  let leaders: Leaders;
  let known: Leaders;
  /** Partition and value of every record that was stored. */
  let stored: string[];
  /** What becomes of the next requests to a broker, before it looks at their records. */
  let before: Record<number, (() => Promise<void>)[]>;
  /** True when kafkajs learns that broker 1 has another id while it makes its next request. */
  let isRenamed: boolean;
  /** The error of a partition that is refused, for as many requests as are given. */
  let refusals: { partition: number; code: number }[];

  beforeEach(() => {
    [leaders, known] = [
      { 1: 1, 2: 2, 3: 1 },
      { 1: 1, 2: 2, 3: 1 },
    ];
    [stored, before, refusals, isRenamed] = [[], {}, [], false];
  });

  function broker(nodeId: number): { nodeId: number } & PatchedBroker {
    const produce: Produce = async ({ topicData }) => {
      await before[nodeId]?.shift()?.();
      const refusal = refusals.shift();
      const refused = new Set<string>();
      let code = NOT_LEADER;
      for (const { topic, partitions } of topicData) {
        for (const { partition, messages } of partitions) {
          const isRefused = refusal?.partition === partition;
          if (isRefused) code = refusal.code;
          if (isRefused || leaders[partition] !== nodeId) refused.add(`${topic}/${partition}`);
          else for (const { value } of messages) stored.push(`${partition} ${String(value)}`);
        }
      }
      if (refused.size > 0) throw Object.assign(createErrorFromCode(code), { refused });
      return { topics: [] };
    };
    const made = { nodeId, produce, apiVersions: () => Promise.resolve({}) };
    markStored(made);
    return made;
  }

  function cluster(): object {
    const brokers = new Map([1, 2].map((nodeId) => [nodeId, broker(nodeId)]));
    return {
      retry: { initialRetryTime: 1 },
      connect: () => Promise.resolve(),
      disconnect: () => Promise.resolve(),
      isConnected: () => true,
      addMultipleTargetTopics: () => Promise.resolve(),
      refreshMetadataIfNecessary: () => Promise.resolve(),
      refreshMetadata: () => Promise.resolve(void (known = { ...leaders })),
      findTopicPartitionMetadata: () => [{ partitionId: 1 }, { partitionId: 2 }],
      findLeaderForPartitions: (_topic: string, partitions: string[]) =>
        Object.groupBy(partitions.map(Number), (partition) => known[partition] ?? 0),
      findBroker: ({ nodeId }: { nodeId: string }) => {
        const found = brokers.get(Number(nodeId));
        const isOther = isRenamed && nodeId === '1';
        isRenamed = isRenamed && !isOther;
        return Promise.resolve(isOther ? { ...found, nodeId: 7 } : found);
      },
    };
  }

  function kafka(): Kafka {
    const byKey = () => (choice: { message: Message }) => Number(choice.message.key);
    const producer = (options: object): Producer =>
      createProducer({ ...options, cluster: cluster(), logger: quiet, createPartitioner: byKey });
    return { producer } as unknown as Kafka;
  }

  async function send(...partitions: number[]): Promise<void> {
    const { send: sendRecords } = await connectProducer(kafka(), () => Promise.resolve());
    await sendRecords(
      partitions.map((partition, n) => ({
        topic: TOPIC,
        key: String(partition),
        value: Buffer.from(`v${n}`),
      })),
    );
  }

  it('sends each record once when every broker stores what it gets', async () => {
    await send(1, 2, 2, 3);
    expect(stored.sort()).toEqual(['1 v0', '2 v1', '2 v2', '3 v3']);
  });

  it('sends a record to the new leader when that broker has already answered', async () => {
    leaders[1] = 2;
    await send(1, 2);
    expect(stored.sort()).toEqual(['1 v0', '2 v1']);
  });

  it('sends again what kafkajs has put into no request', async () => {
    isRenamed = true;
    await send(1, 2);
    expect(stored.sort()).toEqual(['1 v0', '2 v1']);
  });

  it('sends again what one partition refused, and not what the others have stored', async () => {
    refusals = [{ partition: 1, code: NOT_LEADER }];
    await send(1, 3, 3);
    expect(stored).toEqual(['3 v1', '3 v2', '1 v0']);
  });

  it('waits for the other broker before it sends again', async () => {
    const answered = turns(20);
    before = {
      1: [() => Promise.reject(createErrorFromCode(NOT_LEADER))],
      2: [() => answered],
    };
    await send(1, 2);
    await answered;
    expect(stored.sort()).toEqual(['1 v0', '2 v1']);
  });

  it('retries three times when nothing is stored, and rejects then', async () => {
    refusals = Array.from({ length: 5 }, () => ({ partition: 1, code: NOT_LEADER }));
    await expect(send(1)).rejects.toThrow('not the leader');
    expect(refusals).toHaveLength(1);
  });

  it('retries more often when some is stored, because the caller would repeat all of it', async () => {
    refusals = Array.from({ length: 5 }, () => ({ partition: 1, code: NOT_LEADER }));
    await send(1, 3);
    expect(stored).toEqual(['3 v1', '1 v0']);
  });

  it('rejects at once when a retry cannot help', async () => {
    refusals = Array.from({ length: 2 }, () => ({ partition: 1, code: TOO_LARGE }));
    await expect(send(1, 3)).rejects.toThrow('larger than the max message size');
    expect(refusals).toHaveLength(1);
  });
});

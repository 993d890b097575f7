import { beforeEach, describe, expect, it, test } from '@jest/globals';
import fc from 'fast-check';
import { type Kafka, type Message, Partitioners, type Producer } from 'kafkajs';
import { createRequire } from 'node:module';
import {
  connectProducer,
  isRecordTooLarge,
  LeftOutError,
  mayRetry,
  partitionOf,
} from './producer.ts';
import { createWork, decodeRecordSet, roomFor } from './fetch/record-batches.ts';
import { NO_VALUE } from './patches/encoder.ts';
import { patchKafkajs } from './patches/patch-kafkajs.ts';
import { type PatchedBroker, type PatchedProtocol, patchBroker } from './patches/produce.ts';

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
    patchBroker(made);
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
    const { send: sendRecords } = await connectProducer(kafka(), {
      waitForRetry: () => Promise.resolve(),
    });
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

const noLeader = Object.assign(new Error('there is no leader'), { retriable: true });
const sizeRefusal = Object.assign(new Error('too large'), { retriable: false });
const wrapped = (name: string, cause: Error): Error =>
  Object.assign(new Error(cause.message, { cause }), { name });
const retriable = wrapped('KafkaJSNumberOfRetriesExceeded', noLeader);

describe('whether a send is retried', () => {
  it.each([
    { failures: 1, mayGoOn: true },
    { failures: 3, mayGoOn: true },
    { failures: 4, mayGoOn: false },
  ])('after $failures failures with nothing stored: $mayGoOn', ({ failures, mayGoOn }) => {
    const failed = { failures, isPartlyStored: false, elapsedMs: 0 };
    expect(mayRetry(retriable, failed)).toBe(mayGoOn);
  });

  it.each([
    { elapsedMs: 0, mayGoOn: true },
    { elapsedMs: 39_999, mayGoOn: true },
    { elapsedMs: 40_000, mayGoOn: false },
  ])(
    'stored in part, $elapsedMs ms after its begin and after many failures: $mayGoOn',
    ({ elapsedMs, mayGoOn }) => {
      const failed = { failures: 20, isPartlyStored: true, elapsedMs };
      expect(mayRetry(retriable, failed)).toBe(mayGoOn);
    },
  );

  it('not with nothing stored either, when its requests have taken 40 s', () => {
    const failed = { failures: 1, isPartlyStored: false, elapsedMs: 40_000 };
    expect(mayRetry(retriable, failed)).toBe(false);
  });

  it.each([
    [
      'nobody leads a partition when the leaders are asked for again',
      wrapped('KafkaJSNonRetriableError', noLeader),
      true,
    ],
    ['kafkajs has left records out', new LeftOutError('left out'), true],
    ['a record is too large', sizeRefusal, false],
    ['a record is too large, wrapped', wrapped('KafkaJSNonRetriableError', sizeRefusal), false],
    ['the producer has disconnected', new Error('The producer is disconnected'), false],
  ])('when %s: see the table', (_when, error, mayGoOn) => {
    expect(mayRetry(error, { failures: 1, isPartlyStored: true, elapsedMs: 0 })).toBe(mayGoOn);
  });
});

const refused = (fields: object): Error => Object.assign(new Error('refused'), fields);

describe('a send that a broker refuses', () => {
  test('is too large when an error of kafkajs says so, itself or by its cause', () => {
    const refusal = refused({ type: 'MESSAGE_TOO_LARGE' });
    expect([refusal, new Error('gave up', { cause: refusal })].map(isRecordTooLarge)).toEqual([
      true,
      true,
    ]);
  });

  test('is not too large after any other error', () => {
    expect(
      [refused({ type: 'UNKNOWN' }), new Error('closed'), 'text'].map(isRecordTooLarge),
    ).toEqual([false, false, false]);
  });
});

const timedOut = Object.assign(new Error('timed out'), { name: 'KafkaJSRequestTimeoutError' });

describe('a broker of kafkajs', () => {
  let requests: string[];
  /** What the next requests come to; an answer when there is none left. */
  let failures: Error[];
  let broker: PatchedBroker;

  beforeEach(() => {
    [requests, failures] = [[], []];
    const answer = (request: string): Promise<object> => {
      requests.push(request);
      const failure = failures.shift();
      return failure ? Promise.reject(failure) : Promise.resolve({});
    };
    broker = { produce: () => answer('produce'), apiVersions: () => answer('versions') };
    patchBroker(broker);
  });

  const produce = (): Promise<unknown> =>
    broker.produce({ topicData: [] }).catch((error: unknown) => error);

  it('is sent records without a question while it answers', async () => {
    await produce();
    await produce();
    expect(requests).toEqual(['produce', 'produce']);
  });

  it('is asked first when it has not answered, and sent nothing until it answers', async () => {
    failures = [timedOut, timedOut, timedOut];
    expect([await produce(), await produce(), await produce()]).toEqual([
      timedOut,
      timedOut,
      timedOut,
    ]);
    expect(requests).toEqual(['produce', 'versions', 'versions']);
    await produce();
    await produce();
    expect(requests.slice(3)).toEqual(['versions', 'produce', 'produce']);
  });

  it('is sent records again at once when it has refused them', async () => {
    failures = [new Error('This server is not the leader for that topic-partition')];
    await produce();
    await produce();
    expect(requests).toEqual(['produce', 'produce']);
  });
});

it('a time-out makes kafkajs ask for the leaders again', async () => {
  const error = Object.assign(new Error('timed out'), { name: 'KafkaJSRequestTimeoutError' });
  const broker: PatchedBroker = {
    produce: () => Promise.reject(error),
    apiVersions: () => Promise.resolve({}),
  };
  patchBroker(broker);
  const { staleMetadata } = require('kafkajs/src/protocol/error.js') as {
    staleMetadata: (error: unknown) => boolean;
  };
  const failure: unknown = await broker.produce({ topicData: [] }).catch((each: unknown) => each);
  expect(staleMetadata(failure)).toBe(true);
});

describe('a send', () => {
  let produced: number;
  let produce: () => Promise<unknown>;
  let answerVersions: () => Promise<object>;
  let broker: PatchedBroker;

  beforeEach(() => {
    produced = 0;
    produce = () => Promise.resolve();
    answerVersions = () => Promise.resolve({});
    broker = {
      produce: () => {
        produced += 1;
        return produce();
      },
      apiVersions: () => answerVersions(),
    };
    patchBroker(broker);
  });

  const sendUntil = (endsAtMs: number): Promise<unknown> => {
    const messages = [{ send: { endsAtMs, requests: [] } }];
    return broker.produce({
      topicData: [{ topic: 't', partitions: [{ partition: 0, messages }] }],
    });
  };

  it('makes no request once it has ended, because its caller repeats it', async () => {
    await expect(sendUntil(performance.now() - 1)).rejects.toMatchObject({ retriable: false });
    expect(produced).toBe(0);
  });

  it('makes no request when it has ended until the broker answers again', async () => {
    produce = () => Promise.reject(timedOut);
    await sendUntil(Infinity).catch(() => undefined);
    const endsAtMs = performance.now() + 20;
    answerVersions = async () => {
      while (performance.now() < endsAtMs) await turns(1);
      return {};
    };
    await expect(sendUntil(endsAtMs)).rejects.toMatchObject({ retriable: false });
    expect(produced).toBe(1);
  });

  it('makes requests until then', async () => {
    await sendUntil(performance.now() + 60_000);
    expect(produced).toBe(1);
  });
});

it('a refused request says which partitions refused their records, and stays the error that kafkajs knows', async () => {
  patchKafkajs();
  const { protocol } = require('kafkajs/src/protocol/requests/produce/index.js') as PatchedProtocol;
  const { response } = protocol({ version: 7 })({ topicData: [] });
  const partitions = [
    { partition: 0, errorCode: 0 },
    { partition: 1, errorCode: 6 },
  ];
  await expect(response.parse({ topics: [{ topicName: 'created', partitions }] })).rejects.toEqual(
    expect.objectContaining({
      type: 'NOT_LEADER_FOR_PARTITION',
      retriable: true,
      refused: new Set(['created/1']),
    }),
  );
});

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

test('a record with headers without a value is written as it was read', async () => {
  patchKafkajs();
  const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0/index.js') as {
    RecordBatch: (batch: object) => Promise<{ buffer: Buffer }>;
  };
  const toRecord = require('kafkajs/src/protocol/recordBatch/record/v0/index.js') as (
    record: object,
  ) => object;
  const headers = { none: NO_VALUE, some: 'a', twice: [Buffer.from('b'), NO_VALUE] };
  const records = [toRecord({ key: null, value: Buffer.from('{}'), headers })];
  const { buffer: bytes } = await RecordBatch({ records, firstTimestamp: 0, maxTimestamp: 0 });
  const [read] = await decodeRecordSet({
    bytes,
    fetchOffset: 0,
    endOffset: 1,
    aborted: [],
    room: roomFor(1),
    work: createWork(),
  });
  expect(read?.headers).toEqual({
    none: null,
    some: Buffer.from('a'),
    twice: [Buffer.from('b'), null],
  });
});

test('the patched encoder of kafkajs writes what its decoder reads, across every growth of its buffer', () => {
  interface Encoder {
    buffer: Buffer;
    writeInt32: (value: number) => Encoder;
    writeVarInt: (value: number) => Encoder;
    writeVarIntBytes: (value: Buffer) => Encoder;
  }
  interface Decoder {
    readInt32: () => number;
    readVarInt: () => number;
    readVarIntBytes: () => Buffer | null;
  }
  patchKafkajs();
  const Encoder = require('kafkajs/src/protocol/encoder.js') as new () => Encoder;
  const Decoder = require('kafkajs/src/protocol/decoder.js') as new (bytes: Buffer) => Decoder;
  const bytes = fc.uint8Array({ maxLength: 3_000 }).map((each) => Buffer.from(each));
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer(), bytes), { maxLength: 8 }), (values) => {
      const encoder = new Encoder();
      for (const [value, data] of values) {
        encoder.writeInt32(value).writeVarInt(value).writeVarIntBytes(data);
      }
      const decoder = new Decoder(encoder.buffer);
      for (const [value, data] of values) {
        expect(decoder.readInt32()).toBe(value);
        expect(decoder.readVarInt()).toBe(value);
        expect(decoder.readVarIntBytes()).toEqual(data);
      }
    }),
  );
});

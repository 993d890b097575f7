import { beforeEach, describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import {
  askBeforeRepeating,
  type PatchedBroker,
  type PatchedProtocol,
  patchProduce,
  refuseLate,
} from './producer.ts';

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
    askBeforeRepeating(broker);
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
  askBeforeRepeating(broker);
  const { staleMetadata } = createRequire(import.meta.url)('kafkajs/src/protocol/error.js') as {
    staleMetadata: (error: unknown) => boolean;
  };
  const failure: unknown = await broker.produce({ topicData: [] }).catch((each: unknown) => each);
  expect(staleMetadata(failure)).toBe(true);
});

describe('a send', () => {
  const produced: object[] = [];
  const broker: PatchedBroker = {
    produce: (request) => Promise.resolve(produced.push(request)),
    apiVersions: () => Promise.resolve({}),
  };
  refuseLate(broker);

  const produce = (endsAtMs: number): Promise<unknown> => {
    const messages = [{ send: { endsAtMs, requests: [] } }];
    return broker.produce({
      topicData: [{ topic: 't', partitions: [{ partition: 0, messages }] }],
    });
  };

  it('makes no request once it has ended, because its caller repeats it', async () => {
    await expect(produce(performance.now() - 1)).rejects.toMatchObject({ retriable: false });
    expect(produced).toHaveLength(0);
  });

  it('makes requests until then', async () => {
    await produce(performance.now() + 60_000);
    expect(produced).toHaveLength(1);
  });
});

it('the broker that kafkajs uses is the one that is patched', () => {
  const require = createRequire(import.meta.url);
  const broker = require('kafkajs/src/broker/index.js') as { prototype: PatchedBroker };
  const { produce } = broker.prototype;
  patchProduce();
  patchProduce();
  expect(broker.prototype.produce).not.toBe(produce);
  expect(typeof broker.prototype.apiVersions).toBe('function');
});

it('a refused request says which partitions refused their records, and stays the error that kafkajs knows', async () => {
  patchProduce();
  const require = createRequire(import.meta.url);
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

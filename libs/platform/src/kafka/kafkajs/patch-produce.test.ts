import { createRequire } from 'node:module';
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  askBeforeRepeating,
  patchProduce,
  type PatchedBroker,
  type PatchedProtocol,
} from './patch-produce.ts';

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

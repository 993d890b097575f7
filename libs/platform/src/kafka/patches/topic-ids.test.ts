import { beforeEach, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import { readOnFromWhatIsLeft } from './offset-out-of-range.ts';
import { patchKafkajs } from './patch-kafkajs.ts';

const require = createRequire(import.meta.url);

interface Manager {
  resolveOffsets: () => Promise<void>;
  commitOffsets: (offsets: object) => Promise<void>;
  nextOffset: (topic: string, partition: number) => { toString: () => string };
  setDefaultOffset: (of: object) => Promise<void>;
}

interface Committed {
  partition: number;
  offset: string;
  metadata: string | null;
}

const GROUP = 'group-of-topic-ids';
const TOPIC = 'orders';

/** What the broker has of partition 0, whose records are 0 to 99. */
let committed: Committed;
/** The id of the topic as the client read it last. */
let topicId: string;

beforeEach(() => {
  patchKafkajs();
  topicId = 'one';
  committed = { partition: 0, offset: '60', metadata: 'c1/one' };
});

/** The class that kafkajs itself uses, in a new generation of its group. */
async function createManager(): Promise<Manager> {
  const OffsetManager = require('kafkajs/src/consumer/offsetManager/index.js') as new (
    options: object,
  ) => Manager;
  const manager = new OffsetManager({
    groupId: GROUP,
    generationId: 1,
    memberId: 'me',
    autoCommit: false,
    memberAssignment: { [TOPIC]: [0] },
    topicConfigurations: { [TOPIC]: { fromBeginning: true } },
    coordinator: {
      isConnected: () => true,
      offsetFetch: () =>
        Promise.resolve({ responses: [{ topic: TOPIC, partitions: [committed] }] }),
      offsetCommit: ({ topics }: { topics: { partitions: Committed[] }[] }) => {
        for (const partition of topics[0]?.partitions ?? []) committed = partition;
        return Promise.resolve();
      },
    },
    cluster: {
      committedOffsets: () => ({}),
      get brokerPool() {
        const topicMetadata = [{ topic: TOPIC, partitionMetadata: [{ topicId }] }];
        return { metadata: { clusterId: 'c1', topicMetadata } };
      },
      refreshMetadata: () => Promise.resolve(),
      fetchTopicsOffset: () =>
        Promise.resolve([{ topic: TOPIC, partitions: [{ partition: 0, offset: '0' }] }]),
    },
    instrumentationEmitter: { emit: () => undefined },
  });
  await manager.resolveOffsets();
  return manager;
}

const nextOffset = async (): Promise<string> =>
  (await createManager()).nextOffset(TOPIC, 0).toString();

it('a group reads on where it has committed', async () => {
  expect(await nextOffset()).toBe('60');
});

it('a group begins anew in a topic that was made again', async () => {
  topicId = 'two';
  expect(await nextOffset()).toBe('0');
});

it.each(['', null])(
  'an offset without an id, set by hand or by an older release, counts: %p',
  async (metadata) => {
    committed = { ...committed, metadata };
    expect(await nextOffset()).toBe('60');
  },
);

it('an offset that was copied from another cluster counts', async () => {
  committed = { ...committed, metadata: 'c2/one' };
  expect(await nextOffset()).toBe('60');
});

it('an offset counts where the broker has no ids', async () => {
  topicId = '';
  expect(await nextOffset()).toBe('60');
});

it('a commit has the id of the topic whose records were read', async () => {
  const manager = await createManager();
  topicId = 'two';
  const topics = [{ topic: TOPIC, partitions: [{ partition: 0, offset: '70' }] }];
  await manager.commitOffsets({ topics });
  expect(committed).toEqual({ partition: 0, offset: '70', metadata: 'c1/one' });
  // As before each fetch.
  await expect(manager.resolveOffsets()).rejects.toMatchObject({ type: 'REBALANCE_IN_PROGRESS' });
  await manager.commitOffsets({ topics });
  expect(committed.metadata).toBe('c1/one');
});

it('a topic that was made again has not lost its end: the member joins again', async () => {
  const found: unknown[] = [];
  readOnFromWhatIsLeft(GROUP, '', (each) => found.push(each));
  const manager = await createManager();
  topicId = 'two';
  await expect(manager.setDefaultOffset({ topic: TOPIC, partition: 0 })).rejects.toMatchObject({
    type: 'REBALANCE_IN_PROGRESS',
  });
  expect([found, committed.offset]).toEqual([[], '60']);
});

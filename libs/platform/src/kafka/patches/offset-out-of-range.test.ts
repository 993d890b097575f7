import { beforeEach, describe, expect, it } from '@jest/globals';
import { createRequire } from 'node:module';
import { type OutOfRange, readOnFromWhatIsLeft } from './offset-out-of-range.ts';
import { patchKafkajs } from './patch-kafkajs.ts';

const require = createRequire(import.meta.url);

interface Manager {
  resolveOffset: (of: object) => void;
  setDefaultOffset: (of: object) => Promise<void>;
}

const GROUP = 'group-of-sources';
const place = { topic: 'orders', partition: 3 };

let committed: unknown[];
let found: OutOfRange[];

beforeEach(() => {
  patchKafkajs();
  [committed, found] = [[], []];
  readOnFromWhatIsLeft(GROUP, '', (each) => found.push(each));
});

/** The class that kafkajs itself uses, of a partition with the offsets 20 to 29 that has read up to `read`. */
function createManager(groupId: string, read: number): Manager {
  const OffsetManager = require('kafkajs/src/consumer/offsetManager/index.js') as new (
    options: object,
  ) => Manager;
  const offsets = { orders: { 3: String(read + 1) } };
  const manager = new OffsetManager({
    groupId,
    generationId: 1,
    memberId: 'me',
    autoCommit: false,
    memberAssignment: { orders: [3] },
    topicConfigurations: { orders: { fromBeginning: true } },
    coordinator: {
      isConnected: () => true,
      offsetCommit: ({ topics }: { topics: { partitions: unknown[] }[] }) => {
        committed.push(...(topics[0]?.partitions ?? []));
        return Promise.resolve();
      },
    },
    cluster: {
      committedOffsets: () => offsets,
      defaultOffset: () => -2,
      findGroupCoordinator: () => Promise.reject(new Error('it is known')),
      brokerPool: { metadata: null },
      refreshMetadata: () => Promise.resolve(),
      fetchTopicsOffset: ([topic]: { fromBeginning: boolean }[]) => {
        const offset = topic?.fromBeginning === true ? '20' : '30';
        return Promise.resolve([{ topic: 'orders', partitions: [{ partition: 3, offset }] }]);
      },
    },
    instrumentationEmitter: { emit: () => undefined },
  });
  manager.resolveOffset({ ...place, offset: String(read) });
  return manager;
}

describe('a source without the offset that is wanted', () => {
  it('is read from the end that is left when it has lost its end', async () => {
    await createManager(GROUP, 98).setDefaultOffset(place);
    expect(committed).toEqual([{ partition: 3, offset: '30', metadata: '' }]);
    expect(found).toEqual([{ ...place, wantedOffset: 99, nextOffset: 30, hasLostItsEnd: true }]);
  });

  it('is read on where it was when it has the offset again, which is a loss too', async () => {
    await createManager(GROUP, 24).setDefaultOffset(place);
    expect(committed).toEqual([{ partition: 3, offset: '25', metadata: '' }]);
    expect(found).toMatchObject([{ nextOffset: 25, hasLostItsEnd: true }]);
  });

  it('is read from the beginning that is left when its retention has removed what was wanted', async () => {
    await createManager(GROUP, 4).setDefaultOffset(place);
    expect(committed).toEqual([{ partition: 3, offset: '20', metadata: '' }]);
    expect(found).toEqual([{ ...place, wantedOffset: 5, nextOffset: 20, hasLostItsEnd: false }]);
  });
});

it('another group begins anew, as its option says', async () => {
  await createManager('group-of-posthorn', 98).setDefaultOffset(place);
  expect(committed).toEqual([{ partition: 3, offset: -2 }]);
  expect(found).toEqual([]);
});

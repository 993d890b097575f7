import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { createGroupPositions, type GroupPositions } from './group-positions.ts';

const PARTITIONS = 12;
const KEYS = Array.from({ length: 120 }, (_, n) => `k${n}`);

let scratch: ScratchLog;
let topic: string;
let positions: GroupPositions;

beforeAll(async () => {
  scratch = await openScratchLog();
  topic = await scratch.newTopic('read', PARTITIONS);
  positions = createGroupPositions(scratch.kafka, { groupId: `${topic}-group`, topics: [topic] });
  await scratch.records.publish(KEYS.map((key) => ({ topic, key, value: Buffer.alloc(0) })));
});

afterAll(async () => {
  await positions.close();
  await scratch.records.close();
});

test('The positions of a group are read for all partitions, or for those that are asked for', async () => {
  const all = await positions.read();
  expect(all.map(({ partition }) => partition).sort()).toHaveLength(PARTITIONS);
  expect(all.reduce((sum, { lag }) => sum + lag, 0)).toBe(KEYS.length);
  expect(all.every(({ committed, lag, endOffset }) => committed === -1 && lag === endOffset)).toBe(
    true,
  );
  const own = [3, 7].map((partition) => ({ topic, partition }));
  expect(await positions.read(own)).toEqual(
    all.filter(({ partition }) => [3, 7].includes(partition)),
  );
  expect(await positions.read([])).toEqual([]);
});

test('The records of a transaction count once it has ended', async () => {
  const own = await scratch.newTopic('transactions', 1);
  const ofOwn = createGroupPositions(scratch.kafka, { groupId: `${own}-group`, topics: [own] });
  const producer = scratch.kafka.producer({ transactionalId: own, maxInFlightRequests: 1 });
  await producer.connect();
  const transaction = await producer.transaction();
  await transaction.send({ topic: own, messages: [{ value: 'a' }, { value: 'b' }] });
  expect((await ofOwn.read()).map(({ lag, endOffset }) => [lag, endOffset])).toEqual([[0, 0]]);
  await transaction.commit();
  // The end of the transaction has an offset too.
  const lag = async (): Promise<number | undefined> => (await ofOwn.read())[0]?.lag;
  await eventually('they count', async () => (await lag()) === 3);
  await producer.disconnect();
  await ofOwn.close();
});

test('The ends before a time are read for all partitions, or for those that are asked for', async () => {
  const nowMs = Date.now() + 60_000;
  const all = await positions.endsBefore(topic, nowMs);
  expect([...all.values()].reduce((sum, end) => sum + end, 0)).toBe(KEYS.length);
  expect(await positions.endsBefore(topic, nowMs, [5])).toEqual(new Map([[5, all.get(5)]]));
  expect(await positions.endsBefore(topic, 1, [5])).toEqual(new Map([[5, 0]]));
});

test('The owners of partitions are those members that have them now', async () => {
  const own = await scratch.newTopic('owned', 2);
  const groupId = `${own}-group`;
  const ofOwn = createGroupPositions(scratch.kafka, { groupId, topics: [own] });
  expect((await ofOwn.readOwners()).state).toBe('empty');
  const member = await scratch.consume(own, () => Promise.resolve());
  const owners = await eventually('the member has them', async () => {
    const found = await ofOwn.readOwners();
    return found.state === 'stable' ? found : null;
  });
  const isOwned = [0, 1, 2].map((partition) => owners.isOwned({ topic: own, partition }));
  expect(isOwned).toEqual([true, true, false]);
  await member.stop(0);
  const left = await ofOwn.readOwners();
  expect([left.state, left.isOwned({ topic: own, partition: 0 })]).toEqual(['empty', false]);
  await ofOwn.close();
});

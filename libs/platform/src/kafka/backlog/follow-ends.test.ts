import { beforeEach, expect, jest, test } from '@jest/globals';
import type { GroupPosition, GroupPositions } from '../offsets/group-positions.ts';
import { createFollowEnds } from './follow-ends.ts';
import type { PartitionEnd } from './unread-records.ts';

const NOW_MS = 1_000_000;
const HOUR_MS = 3_600_000;

let positions: GroupPosition[];
let mayBeDue: boolean;
let noted: PartitionEnd[];
let warnings: number;
let endsBefore: jest.Mock<GroupPositions['endsBefore']>;
let read: jest.Mock<GroupPositions['read']>;

const positionOf = (topic: string, partition = 0): GroupPosition => ({
  topic,
  partition,
  committed: 10,
  lag: 30,
  endOffset: 40,
});

const followEnds = (): Promise<GroupPosition[]> =>
  createFollowEnds({
    positions: { read, endsBefore },
    consumer: () => ({
      assigned: () => [positionOf('fresh'), positionOf('parked')],
      mayBeDue: () => mayBeDue,
      noteEnds: (ends) => void noted.push(...ends),
    }),
    readiness: { sinceMs: () => 0, afterMs: (topic) => (topic === 'parked' ? HOUR_MS : 0) },
    nowMs: () => NOW_MS,
    logger: { warn: () => (warnings += 1) },
  })();

beforeEach(() => {
  [noted, warnings, mayBeDue] = [[], 0, true];
  positions = [positionOf('fresh'), positionOf('fresh', 1), positionOf('parked')];
  read = jest.fn(() => Promise.resolve(positions));
  endsBefore = jest.fn(() => Promise.resolve(new Map([[0, 17]])));
});

test('A consumer is told where its own partitions end, those of a delay topic where they are due', async () => {
  expect(await followEnds()).toBe(positions);
  expect(noted).toEqual([
    { topic: 'fresh', partition: 0, committed: 10, endOffset: 40 },
    { topic: 'parked', partition: 0, committed: 10, endOffset: 17 },
  ]);
  expect(endsBefore.mock.calls).toEqual([['parked', NOW_MS - HOUR_MS + 1, [0]]]);
  expect(read.mock.calls).toEqual([[[positionOf('fresh'), positionOf('parked')]]]);
});

test('Kafka is not asked about delay topics whose next record is not due', async () => {
  mayBeDue = false;
  await followEnds();
  expect(endsBefore).not.toHaveBeenCalled();
});

test('The positions are read all the same when Kafka does not tell what is due', async () => {
  endsBefore.mockRejectedValue(new Error('Kafka is away'));
  expect(await followEnds()).toBe(positions);
  expect(warnings).toBe(1);
});

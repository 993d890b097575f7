import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { GroupPosition, GroupPositions } from './offsets/group-positions.ts';
import {
  createFollowEnds,
  createUnreadRecords,
  type PartitionEnd,
  type TakenBatch,
  type UnreadRecords,
} from './unread-records.ts';

describe('unread records', () => {
  const NOW_MS = 1_000_000;
  const NONE = { records: 0, oldestMs: Infinity };

  let unread: UnreadRecords;

  beforeEach(() => {
    unread = createUnreadRecords((topic) => topic === 'delayed');
  });

  function take(changed: Partial<TakenBatch>): void {
    unread.noteBatch({
      topic: 'fresh',
      partition: 0,
      nextOffset: 10,
      endOffset: 10,
      nextSinceMs: NOW_MS - 500,
      ...changed,
    });
  }

  const readyIn = (topic: string, nowMs: number) => unread.ready(nowMs).get(topic) ?? NONE;
  const noteEnd = (topic: string, endOffset: number, committed = 0) => {
    unread.noteEnds([{ topic, partition: 0, committed, endOffset }], NOW_MS);
  };

  describe('the records of a topic that were not begun', () => {
    test('are those from the last batch to the end of each partition', () => {
      take({ endOffset: 110 });
      take({ partition: 1, endOffset: 15, nextSinceMs: NOW_MS - 900 });
      expect(readyIn('fresh', NOW_MS)).toEqual({ records: 105, oldestMs: NOW_MS - 900 });
    });

    test('are none when a batch was taken to the end', () => {
      take({});
      expect(readyIn('fresh', NOW_MS)).toEqual(NONE);
    });

    test('of a partition that is paused grow with the end that the broker reports', () => {
      take({ endOffset: 110 });
      noteEnd('fresh', 210);
      expect(readyIn('fresh', NOW_MS)).toEqual({ records: 200, oldestMs: NOW_MS - 500 });
    });

    test('of a partition without a batch begin at the commit, and are as old as they are known', () => {
      noteEnd('fresh', 30, 10);
      expect(readyIn('fresh', NOW_MS + 700)).toEqual({ records: 20, oldestMs: NOW_MS });
    });

    test('that came after the last batch are not as old as the record before them', () => {
      take({ nextSinceMs: NOW_MS - 3_600_000 });
      noteEnd('fresh', 11);
      expect(readyIn('fresh', NOW_MS)).toEqual({ records: 1, oldestMs: NOW_MS });
    });

    test('are not taken back by an answer of the broker that is older than the last batch', () => {
      take({ endOffset: 110 });
      noteEnd('fresh', 40);
      expect(readyIn('fresh', NOW_MS).records).toBe(100);
    });

    test('end where a log was cut that lost its last records', () => {
      take({ endOffset: 110 });
      take({ nextOffset: 5, endOffset: 5 });
      expect(readyIn('fresh', NOW_MS)).toEqual(NONE);
    });

    test('of a partition that went to another member are forgotten', () => {
      take({ endOffset: 110 });
      unread.retainOnly({ fresh: [1] });
      expect(readyIn('fresh', NOW_MS)).toEqual(NONE);
    });
  });

  describe('the records of a delay topic', () => {
    const parked = (nextSinceMs: number): void => {
      take({ topic: 'delayed', endOffset: 5_010, nextSinceMs });
    };

    test('are not ready while the first of them is not due, however many wait', () => {
      parked(NOW_MS + 3_600_000);
      expect(readyIn('delayed', NOW_MS)).toEqual(NONE);
      expect(unread.mayBeDue({ topic: 'delayed', partition: 0 }, NOW_MS)).toBe(false);
    });

    test('are ready once they are due: the first by its own time, the others as the broker reports', () => {
      parked(NOW_MS - 100);
      expect(readyIn('delayed', NOW_MS)).toEqual({ records: 1, oldestMs: NOW_MS - 100 });
      expect(unread.mayBeDue({ topic: 'delayed', partition: 0 }, NOW_MS)).toBe(true);
      noteEnd('delayed', 40);
      expect(readyIn('delayed', NOW_MS)).toEqual({ records: 30, oldestMs: NOW_MS - 100 });
    });

    test('are none when all that were due are begun', () => {
      noteEnd('delayed', 40);
      take({ topic: 'delayed', nextOffset: 40, endOffset: 5_010, nextSinceMs: NOW_MS + 1 });
      expect(readyIn('delayed', NOW_MS)).toEqual(NONE);
    });
  });
});

describe('follow ends', () => {
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
        unread: { mayBeDue: () => mayBeDue, noteEnds: (ends) => void noted.push(...ends) },
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

  test('notes the ends of the own partitions of a consumer, and for a delay topic the end of the due records', async () => {
    expect(await followEnds()).toBe(positions);
    expect(noted).toEqual([
      { topic: 'fresh', partition: 0, committed: 10, endOffset: 40 },
      { topic: 'parked', partition: 0, committed: 10, endOffset: 17 },
    ]);
    expect(endsBefore.mock.calls).toEqual([['parked', NOW_MS - HOUR_MS + 1, [0]]]);
    expect(read.mock.calls).toEqual([[[positionOf('fresh'), positionOf('parked')]]]);
  });

  test('requests nothing about delay topics whose next record is not due', async () => {
    mayBeDue = false;
    await followEnds();
    expect(endsBefore).not.toHaveBeenCalled();
  });

  test('returns the positions all the same when Kafka does not report the due records', async () => {
    endsBefore.mockRejectedValue(new Error('Kafka is away'));
    expect(await followEnds()).toBe(positions);
    expect(warnings).toBe(1);
  });
});

import { beforeEach, describe, expect, test } from '@jest/globals';
import { MAX_UNCOMMITTED } from './owned-partitions.ts';
import {
  createWorkedPartitions,
  type WorkedPartitions,
} from '../../../../../test/support/isolation/worked-partitions.ts';

let partitions: WorkedPartitions['partitions'];
let ofBatch: WorkedPartitions['ofBatch'];
let work: WorkedPartitions['work'];
let commit: WorkedPartitions['commit'];

beforeEach(() => {
  ({ partitions, ofBatch, work, commit } = createWorkedPartitions());
});

describe('what a former owner may have begun', () => {
  test('is what the partition held when it was assigned', () => {
    expect(ofBatch('a', 0, 10, 15).inheritedBelow).toBe(15);
    expect(ofBatch('a', 0, 15, 40).inheritedBelow).toBe(15);
  });

  test('is never further ahead than any owner reads', () => {
    expect(ofBatch('a', 0, 10, 10 + 2 * MAX_UNCOMMITTED).inheritedBelow).toBe(10 + MAX_UNCOMMITTED);
  });

  test('is determined again after the group changed', () => {
    work('a', 0, [1, 2], [1]);
    commit();
    partitions.markAllStale();
    expect(ofBatch('a', 0, 2, 120).inheritedBelow).toBe(120);
  });
});

describe('after a change of the group', () => {
  test('nothing is committed until the partition is read again, and it is not idle before', () => {
    work('a', 0, [1], [1]);
    partitions.markAllStale();
    expect([partitions.uncommitted(), partitions.isIdle()]).toEqual([[], false]);
    ofBatch('a', 0, 1);
    expect([partitions.uncommitted().length, partitions.isIdle()]).toEqual([1, true]);
  });

  test.each([
    ['where it was committed', 2],
    ['at a commit that arrived without an answer', 3],
  ])('work is kept when reading resumes %s', (_where, firstOffset) => {
    const before = work('a', 0, [1, 2, 3], [1]);
    commit();
    before.finish(2);
    partitions.markAllStale();
    const { offsets } = ofBatch('a', 0, firstOffset);
    expect([offsets.begin(3), offsets.begin(4)]).toEqual([false, true]);
    before.finish(3);
    expect(partitions.uncommitted()).toEqual([{ topic: 'a', partition: 0, offset: 4 }]);
  });

  test('work is kept when nothing was committed and reading resumes where it began', () => {
    work('a', 0, [1, 2], []);
    partitions.markAllStale();
    expect(ofBatch('a', 0, 1).offsets.begin(2)).toBe(false);
  });

  test.each([
    ['further on, at the commit of another member', 3],
    ['earlier, because a commit was lost', 1],
  ])('the partition starts afresh when reading resumes twice %s', (_where, firstOffset) => {
    const former = ofBatch('a', 0, 1);
    const before = work('a', 0, [1, 2, 3, 4], [1]);
    commit();
    partitions.markAllStale();
    expect(partitions.ofBatch('a', 0, { firstOffset, endOffset: 5 })).toBeNull();
    expect(ofBatch('a', 0, firstOffset).offsets.begin(firstOffset)).toBe(true);
    for (const offset of [2, 3, 4]) before.finish(offset);
    expect([partitions.uncommitted(), partitions.inFlightIn('a')]).toEqual([[], 1]);
    expect(former.isGone).toBe(true);
  });

  test('a batch that was fetched before it is skipped once, and no record is lost', () => {
    const before = work('a', 0, [1, 2], [1]);
    commit();
    partitions.markAllStale();
    expect(partitions.ofBatch('a', 0, { firstOffset: 3, endOffset: 5 })).toBeNull();
    expect(ofBatch('a', 0, 2).offsets).toBe(before);
  });
});

describe('a partition that has lost records after a crash of its brokers', () => {
  test.each([
    ['before what was committed', 1, 5],
    ['before what is in flight, where reading resumed', 4, 6],
  ])(
    'starts afresh, so that new records with the old offsets are handled: %s',
    (_end, first, end) => {
      const before = ofBatch('a', 0, 1);
      work('a', 0, [1, 2, 3, 4, 5, 6], [1, 2, 3]);
      commit();
      const { offsets, inheritedBelow } = ofBatch('a', 0, first, end);
      expect([offsets.begin(first), offsets.begin(end - 1), inheritedBelow]).toEqual([
        ...[true, true, end],
      ]);
      expect(partitions.uncommitted()).toEqual([]);
      // What was read before is nowhere else any more: nobody else can finish it.
      expect(before.isGone).toBe(false);
    },
  );

  test('starts afresh when it has grown past its old end before it is read again', () => {
    work('a', 0, [1, 2, 3], [1, 2, 3]);
    expect(ofBatch('a', 0, 1, 50).offsets.begin(2)).toBe(true);
  });

  test('starts afresh after a change of the group too, though reading resumes at the commit', () => {
    work('a', 0, [1, 2, 3, 4], [1]);
    commit();
    partitions.markAllStale();
    expect(ofBatch('a', 0, 2, 4).offsets.begin(3)).toBe(true);
  });
});

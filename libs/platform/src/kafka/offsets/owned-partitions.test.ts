import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createWorkedPartitions,
  type WorkedPartitions,
} from '../../../../../test/support/isolation/worked-partitions.ts';
import { canBegin, MAX_UNCOMMITTED, readOn } from './owned-partitions.ts';

let partitions: WorkedPartitions['partitions'];
let ofBatch: WorkedPartitions['ofBatch'];
let work: WorkedPartitions['work'];
let commit: WorkedPartitions['commit'];

beforeEach(() => {
  ({ partitions, ofBatch, work, commit } = createWorkedPartitions());
});

describe('the owned partitions', () => {
  test('count the records in flight of each topic, and what no commit covers in each partition', () => {
    work('a', 0, [1, 2, 3], [2]);
    work('a', 1, [1], []);
    work('b', 0, [7], [7]);
    expect([partitions.inFlightIn('a'), partitions.inFlightIn('b')]).toEqual([3, 0]);
    const begun = () => [
      partitions.uncommittedIn('a', 0),
      partitions.uncommittedIn('b', 0),
      partitions.uncommittedIn('c', 0),
    ];
    expect(begun()).toEqual([3, 1, 0]);
    commit();
    expect(begun()).toEqual([3, 0, 0]);
  });

  test('count no record in flight whose work was abandoned, or whose partition was lost and came back', () => {
    const offsets = work('a', 0, [1, 2, 3], [1]);
    work('a', 1, [1], []);
    offsets.abandon(2);
    offsets.finish(2);
    expect(partitions.inFlightIn('a')).toBe(2);
    partitions.retainOnly({ a: [1] });
    expect(partitions.inFlightIn('a')).toBe(1);
    work('a', 0, [3, 4], []);
    offsets.finish(3);
    offsets.abandon(3);
    expect(partitions.inFlightIn('a')).toBe(3);
  });

  test('keep the offsets of a partition from batch to batch', () => {
    work('a', 0, [1, 2], []);
    work('a', 0, [3], [3]);
    expect(partitions.inFlightIn('a')).toBe(2);
    expect(ofBatch('a', 0, 4).offsets.begin(3)).toBe(false);
  });

  test('return what may be committed of each partition', () => {
    work('a', 0, [1, 2, 3], [1, 3]);
    work('a', 1, [5], [5]);
    work('b', 0, [9], []);
    expect(partitions.uncommitted()).toEqual([
      { topic: 'a', partition: 0, offset: 2 },
      { topic: 'a', partition: 1, offset: 6 },
    ]);
  });

  test('return a commit until it is marked, and the next one when more is done', () => {
    const offsets = work('a', 0, [1, 2], [1]);
    commit();
    expect(partitions.uncommitted()).toEqual([]);
    offsets.finish(2);
    expect(partitions.uncommitted()).toEqual([{ topic: 'a', partition: 0, offset: 3 }]);
  });

  test('return a commit that failed again', () => {
    work('a', 0, [1], [1]);
    const failed = partitions.uncommitted();
    expect(failed).toHaveLength(1);
    expect(partitions.uncommitted()).toEqual(failed);
  });

  test('forget partitions that went to another member, and keep the others', () => {
    work('a', 0, [1], []);
    work('a', 1, [1], [1]);
    work('b', 0, [1], []);
    partitions.retainOnly({ a: [1], c: [0] });
    expect(partitions.inFlightIn('a')).toBe(0);
    expect(partitions.uncommitted()).toEqual([{ topic: 'a', partition: 1, offset: 2 }]);
    expect(ofBatch('a', 0, 1).offsets.begin(1)).toBe(true);
  });

  test('do not bring back a lost partition when its commit is marked late', () => {
    work('a', 0, [1], [1]);
    const commits = partitions.uncommitted();
    partitions.retainOnly({});
    partitions.markCommitted(commits);
    expect([partitions.uncommitted(), partitions.inFlightIn('a')]).toEqual([[], 0]);
  });

  test('ignore an earlier commit that is marked late', () => {
    const offsets = work('a', 0, [1, 2], [1]);
    const earlier = partitions.uncommitted();
    offsets.finish(2);
    commit();
    partitions.markCommitted(earlier);
    expect(partitions.uncommitted()).toEqual([]);
  });

  test('begin no record further ahead of the commit than the limit', () => {
    const owned = ofBatch('a', 0, 10);
    const last = 10 + MAX_UNCOMMITTED - 1;
    expect([canBegin(owned, last), canBegin(owned, last + 1)]).toEqual([true, false]);
    owned.offsets.begin(10);
    owned.offsets.finish(10);
    expect(canBegin(owned, last + 1)).toBe(false);
    commit();
    expect(canBegin(owned, last + 1)).toBe(true);
  });

  test('are idle when nothing is in flight', () => {
    const offsets = work('a', 0, [1, 2], [1]);
    expect(partitions.isIdle()).toBe(false);
    offsets.finish(2);
    expect(partitions.isIdle()).toBe(true);
  });

  test('ignore the end of work that began before the partition was lost and came back', () => {
    const before = work('a', 0, [1], []);
    partitions.retainOnly({});
    work('a', 0, [1], []);
    before.finish(1);
    expect([partitions.uncommitted(), partitions.inFlightIn('a')]).toEqual([[], 1]);
  });
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

/**
 * Reads batches, given by their first offset and the offset after what was taken from them; returns the first offsets
 * of those at which reading had started over.
 */
function startsOverAmong(...batches: [number, number][]): number[] {
  let known = ofBatch('a', 0, batches[0]?.[0] ?? 0);
  return batches.flatMap(([firstOffset, readTo]) => {
    const owned = ofBatch('a', 0, firstOffset);
    const hasStartedOver = owned !== known;
    known = owned;
    if (readTo > firstOffset) readOn(owned, readTo);
    return hasStartedOver ? [firstOffset] : [];
  });
}

/** The group has changed, and the commit of everything after offset 4 was lost. */
function changeGroup(): void {
  const offsets = Array.from({ length: 20 }, (_, n) => 5 + n);
  work('a', 0, offsets, offsets);
  partitions.markAllStale();
}

describe('reading a partition', () => {
  test('continues from batch to batch, also behind a record that is not due', () => {
    expect(startsOverAmong([5, 8], [8, 8], [8, 9], [9, 20])).toEqual([]);
  });

  test('starts over where the partition has lost what was read', () => {
    expect(startsOverAmong([0, 2], [0, 2])).toEqual([0]);
  });

  test('does not start over after a fetch from before the change of the group', () => {
    changeGroup();
    expect(startsOverAmong([20, 25], [5, 8], [25, 30])).toEqual([]);
  });

  test('does not start over after such a fetch either when the next batch begins with a record that is not due', () => {
    changeGroup();
    expect(startsOverAmong([20, 25], [5, 5], [5, 8], [25, 30])).toEqual([]);
  });

  test.each([
    ['before the commit', [5, 8], [4, 6], [4]],
    ['before what was read', [5, 8], [8, 12], [6, 9], [6]],
  ] as const)('starts over after a change of the group too, %s', (_where, ...steps) => {
    changeGroup();
    const batches = steps.slice(0, -1) as [number, number][];
    expect(startsOverAmong(...batches)).toEqual(steps.at(-1));
  });
});

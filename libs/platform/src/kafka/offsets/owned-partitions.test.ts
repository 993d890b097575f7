import { beforeEach, describe, expect, it, test } from '@jest/globals';
import {
  createWorkedPartitions,
  type WorkedPartitions,
} from '../../../../../test/support/isolation/worked-partitions.ts';
import {
  canBegin,
  MAX_UNCOMMITTED,
  type ReadingPosition,
  readOn,
  resumeReadingAt,
  startReadingAt,
  wasSetBack,
} from './owned-partitions.ts';

describe('owned partitions', () => {
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
});

/** Reads batches, given by their first offset and the offset after what was taken; returns where reading was set back. */
function setBackAmong(position: ReadingPosition, batches: [number, number][]): number[] {
  return batches.flatMap(([firstOffset, readTo]) => {
    if (wasSetBack(position, firstOffset)) return [firstOffset];
    if (readTo > firstOffset) readOn(position, readTo);
    return [];
  });
}

const TWICE: [number, number][] = [
  [0, 2],
  [0, 2],
];

describe('reading a partition', () => {
  it('is not set back from batch to batch, nor by a record that is not due', () => {
    const batches: [number, number][] = [
      [5, 8],
      [8, 8],
      [8, 9],
      [9, 20],
    ];
    expect(setBackAmong(startReadingAt(5), batches)).toEqual([]);
  });

  it('is set back where the partition has lost what was read', () => {
    expect(setBackAmong(startReadingAt(0), TWICE)).toEqual([0]);
  });

  it('is not set back by a fetch from before the change of the group', () => {
    const batches: [number, number][] = [
      [20, 25],
      [5, 8],
      [25, 30],
    ];
    expect(setBackAmong(resumeReadingAt(5), batches)).toEqual([]);
  });

  it('is not set back by such a fetch either when the next batch begins with a record that is not due', () => {
    const batches: [number, number][] = [
      [20, 25],
      [5, 5],
      [5, 8],
      [25, 30],
    ];
    expect(setBackAmong(resumeReadingAt(5), batches)).toEqual([]);
  });

  it('is set back after a change of the group too', () => {
    expect(setBackAmong(resumeReadingAt(5), [[4, 6]])).toEqual([4]);
    const batches: [number, number][] = [
      [5, 8],
      [8, 12],
      [6, 9],
    ];
    expect(setBackAmong(resumeReadingAt(5), batches)).toEqual([6]);
  });
});

import { beforeEach, describe, expect, test } from '@jest/globals';
import { createPartitionWindow, type PartitionWindow } from './partition-window.ts';

let window: PartitionWindow;

beforeEach(() => {
  window = createPartitionWindow();
});

/** Takes a batch of these offsets and finishes some of them. */
function work(topic: string, partition: number, begun: number[], finished: number[]) {
  const offsets = window.arrive(topic, partition, begun[0] ?? 0);
  for (const offset of begun) offsets.begin(offset);
  for (const offset of finished) offsets.finish(offset);
  return offsets;
}

const commit = () => {
  window.markCommitted(window.uncommitted());
};

describe('the window over the partitions of a member', () => {
  test('counts what is under work in all of them, and what holds back each commit', () => {
    work('a', 0, [1, 2, 3], [2]);
    work('a', 1, [1], []);
    work('b', 0, [7], [7]);
    expect(window.inFlight()).toBe(3);
    expect([window.heldIn('a', 0), window.heldIn('b', 0), window.heldIn('c', 0)]).toEqual([
      3, 0, 0,
    ]);
  });

  test('goes on with a partition over its batches', () => {
    work('a', 0, [1, 2], []);
    work('a', 0, [3], [3]);
    expect(window.inFlight()).toBe(2);
    expect(window.arrive('a', 0, 1).begin(3)).toBe(false);
  });

  test('tells what may be committed, each partition for itself', () => {
    work('a', 0, [1, 2, 3], [1, 3]);
    work('a', 1, [5], [5]);
    work('b', 0, [9], []);
    expect(window.uncommitted()).toEqual([
      { topic: 'a', partition: 0, offset: 2 },
      { topic: 'a', partition: 1, offset: 6 },
    ]);
  });

  test('tells a commit once, and again when more is done', () => {
    const offsets = work('a', 0, [1, 2], [1]);
    commit();
    expect(window.uncommitted()).toEqual([]);
    offsets.finish(2);
    expect(window.uncommitted()).toEqual([{ topic: 'a', partition: 0, offset: 3 }]);
  });

  test('keeps a commit that failed for the next time', () => {
    work('a', 0, [1], [1]);
    const failed = window.uncommitted();
    expect(failed).toHaveLength(1);
    expect(window.uncommitted()).toEqual(failed);
  });

  test('forgets partitions that went to another member, and keeps the others', () => {
    work('a', 0, [1], []);
    work('a', 1, [1], [1]);
    work('b', 0, [1], []);
    window.keepOnly({ a: [1], c: [0] });
    expect(window.inFlight()).toBe(0);
    expect(window.uncommitted()).toEqual([{ topic: 'a', partition: 1, offset: 2 }]);
    expect(window.arrive('a', 0, 1).begin(1)).toBe(true);
  });

  test('does not bring back a lost partition when its late commit is noted', () => {
    work('a', 0, [1], [1]);
    const commits = window.uncommitted();
    window.keepOnly({});
    window.markCommitted(commits);
    expect([window.uncommitted(), window.inFlight()]).toEqual([[], 0]);
  });

  test('ignores the end of work that began before the partition was lost and came back', () => {
    const before = work('a', 0, [1], []);
    window.keepOnly({});
    work('a', 0, [1], []);
    before.finish(1);
    expect([window.uncommitted(), window.inFlight()]).toEqual([[], 1]);
  });
});

describe('after a time out of the group', () => {
  test('nothing is committed until the partition is read again', () => {
    work('a', 0, [1], [1]);
    window.doubtAll();
    expect(window.uncommitted()).toEqual([]);
  });

  test('work is kept when reading goes on where it was committed', () => {
    const before = work('a', 0, [1, 2, 3], [1]);
    commit();
    window.doubtAll();
    const after = window.arrive('a', 0, 2);
    expect([after.begin(2), after.begin(3), after.begin(4)]).toEqual([false, false, true]);
    before.finish(2);
    expect(window.uncommitted()).toEqual([{ topic: 'a', partition: 0, offset: 3 }]);
  });

  test('work is kept when nothing was committed and reading begins where it began', () => {
    work('a', 0, [1, 2], []);
    window.doubtAll();
    expect(window.arrive('a', 0, 1).begin(2)).toBe(false);
  });

  test.each([
    ['further, where another member committed', 3],
    ['earlier, where a commit was lost', 1],
  ])('everything begins anew when reading goes on %s', (_where, firstOffset) => {
    const before = work('a', 0, [1, 2, 3, 4], [1]);
    commit();
    window.doubtAll();
    expect(window.arrive('a', 0, firstOffset).begin(firstOffset)).toBe(true);
    for (const offset of [2, 3, 4]) before.finish(offset);
    expect([window.uncommitted(), window.inFlight()]).toEqual([[], 1]);
  });
});

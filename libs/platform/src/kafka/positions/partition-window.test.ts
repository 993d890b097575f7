import { beforeEach, describe, expect, test } from '@jest/globals';
import { hasRoomFor, MAX_HELD } from './partition-window.ts';
import {
  createWorkedWindow,
  type WorkedWindow,
} from '../../../../../test/support/isolation/worked-window.ts';

let window: WorkedWindow['window'];
let arrive: WorkedWindow['arrive'];
let work: WorkedWindow['work'];
let commit: WorkedWindow['commit'];

beforeEach(() => {
  ({ window, arrive, work, commit } = createWorkedWindow());
});

describe('the window over the partitions of a member', () => {
  test('counts what is under work in each topic, and what each commit does not cover', () => {
    work('a', 0, [1, 2, 3], [2]);
    work('a', 1, [1], []);
    work('b', 0, [7], [7]);
    expect([window.inFlightIn('a'), window.inFlightIn('b')]).toEqual([3, 0]);
    const begun = () => [window.begunIn('a', 0), window.begunIn('b', 0), window.begunIn('c', 0)];
    expect(begun()).toEqual([3, 1, 0]);
    commit();
    expect(begun()).toEqual([3, 0, 0]);
  });

  test('goes on with a partition over its batches', () => {
    work('a', 0, [1, 2], []);
    work('a', 0, [3], [3]);
    expect(window.inFlightIn('a')).toBe(2);
    expect(arrive('a', 0, 1).offsets.begin(3)).toBe(false);
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
    expect(window.inFlightIn('a')).toBe(0);
    expect(window.uncommitted()).toEqual([{ topic: 'a', partition: 1, offset: 2 }]);
    expect(arrive('a', 0, 1).offsets.begin(1)).toBe(true);
  });

  test('does not bring back a lost partition when its late commit is noted', () => {
    work('a', 0, [1], [1]);
    const commits = window.uncommitted();
    window.keepOnly({});
    window.markCommitted(commits);
    expect([window.uncommitted(), window.inFlightIn('a')]).toEqual([[], 0]);
  });

  test('never goes back when an earlier commit is noted late', () => {
    const offsets = work('a', 0, [1, 2], [1]);
    const earlier = window.uncommitted();
    offsets.finish(2);
    commit();
    window.markCommitted(earlier);
    expect(window.uncommitted()).toEqual([]);
  });

  test('reads no further ahead of the commit than a stuck record may hold back', () => {
    const owned = arrive('a', 0, 10);
    const last = 10 + MAX_HELD - 1;
    expect([hasRoomFor(owned, last), hasRoomFor(owned, last + 1)]).toEqual([true, false]);
    owned.offsets.begin(10);
    owned.offsets.finish(10);
    expect(hasRoomFor(owned, last + 1)).toBe(false);
    commit();
    expect(hasRoomFor(owned, last + 1)).toBe(true);
  });

  test('is quiet when nothing is under work', () => {
    const offsets = work('a', 0, [1, 2], [1]);
    expect(window.isQuiet()).toBe(false);
    offsets.finish(2);
    expect(window.isQuiet()).toBe(true);
  });

  test('ignores the end of work that began before the partition was lost and came back', () => {
    const before = work('a', 0, [1], []);
    window.keepOnly({});
    work('a', 0, [1], []);
    before.finish(1);
    expect([window.uncommitted(), window.inFlightIn('a')]).toEqual([[], 1]);
  });
});

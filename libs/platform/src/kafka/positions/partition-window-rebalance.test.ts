import { beforeEach, describe, expect, test } from '@jest/globals';
import { MAX_HELD } from './partition-window.ts';
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

describe('what a former owner may have begun', () => {
  test('is what the partition held when it came to us', () => {
    expect(arrive('a', 0, 10, 15).inheritedBelow).toBe(15);
    expect(arrive('a', 0, 15, 40).inheritedBelow).toBe(15);
  });

  test('is never further ahead than any owner reads', () => {
    expect(arrive('a', 0, 10, 10 + 2 * MAX_HELD).inheritedBelow).toBe(10 + MAX_HELD);
  });

  test('is told anew after the group changed', () => {
    work('a', 0, [1, 2], [1]);
    commit();
    window.doubtAll();
    expect(arrive('a', 0, 2, 120).inheritedBelow).toBe(120);
  });
});

describe('after a change of the group', () => {
  test('nothing is committed until the partition is read again, and a stop waits for that', () => {
    work('a', 0, [1], [1]);
    window.doubtAll();
    expect([window.uncommitted(), window.isQuiet()]).toEqual([[], false]);
    arrive('a', 0, 1);
    expect([window.uncommitted().length, window.isQuiet()]).toEqual([1, true]);
  });

  test.each([
    ['where it was committed', 2],
    ['where a commit without an answer had arrived', 3],
  ])('work is kept when reading goes on %s', (_where, firstOffset) => {
    const before = work('a', 0, [1, 2, 3], [1]);
    commit();
    before.finish(2);
    window.doubtAll();
    const { offsets } = arrive('a', 0, firstOffset);
    expect([offsets.begin(3), offsets.begin(4)]).toEqual([false, true]);
    before.finish(3);
    expect(window.uncommitted()).toEqual([{ topic: 'a', partition: 0, offset: 4 }]);
  });

  test('work is kept when nothing was committed and reading begins where it began', () => {
    work('a', 0, [1, 2], []);
    window.doubtAll();
    expect(arrive('a', 0, 1).offsets.begin(2)).toBe(false);
  });

  test.each([
    ['further, where another member committed', 3],
    ['earlier, where a commit was lost', 1],
  ])('everything begins anew when reading twice goes on %s', (_where, firstOffset) => {
    const before = work('a', 0, [1, 2, 3, 4], [1]);
    commit();
    window.doubtAll();
    expect(window.arrive('a', 0, { firstOffset, endOffset: 5 })).toBeNull();
    expect(arrive('a', 0, firstOffset).offsets.begin(firstOffset)).toBe(true);
    for (const offset of [2, 3, 4]) before.finish(offset);
    expect([window.uncommitted(), window.inFlightIn('a')]).toEqual([[], 1]);
  });

  test('a batch that was on its way before it is left unread, and nothing is skipped', () => {
    const before = work('a', 0, [1, 2], [1]);
    commit();
    window.doubtAll();
    expect(window.arrive('a', 0, { firstOffset: 3, endOffset: 5 })).toBeNull();
    expect(arrive('a', 0, 2).offsets).toBe(before);
  });
});

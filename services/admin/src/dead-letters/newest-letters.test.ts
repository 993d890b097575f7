import { expect, test } from '@jest/globals';
import { createNewest } from './newest-letters.ts';

test('the newest entries are kept in any order of arrival, and all are counted', () => {
  const newest = createNewest<{ atMs: number }>(3);
  for (const atMs of [5, 1, 9, 2, 8, 3, 7, 4, 6]) newest.add({ atMs });
  expect(newest.entries().map(({ atMs }) => atMs)).toEqual([9, 8, 7]);
  expect(newest.added()).toBe(9);
});

test('fewer entries than the limit are all kept', () => {
  const newest = createNewest<{ atMs: number }>(3);
  newest.add({ atMs: 1 });
  newest.add({ atMs: 2 });
  expect(newest.entries()).toEqual([{ atMs: 2 }, { atMs: 1 }]);
});

import { expect, test } from '@jest/globals';
import { DAY_MS } from '@posthorn/domain/ids/days.ts';
import { daysToDrop, daysToHave } from './which-days.ts';

const NOON = 100.5 * DAY_MS;
const layout = { beginMs: 0, retentionMs: 2 * DAY_MS };

test('today and the three days after it have a collection', () => {
  expect(daysToHave(layout, NOON)).toEqual([100, 101, 102, 103]);
});

test('no day has one before days begin, and the day in which they begin has one', () => {
  expect(daysToHave({ ...layout, beginMs: Infinity }, NOON)).toEqual([]);
  expect(daysToHave({ ...layout, beginMs: 102 * DAY_MS - 1 }, NOON)).toEqual([101, 102, 103]);
  expect(daysToHave({ ...layout, beginMs: 102 * DAY_MS }, NOON)).toEqual([102, 103]);
});

test('a day is dropped when its last millisecond has expired', () => {
  const days = [95, 96, 97, 98, 103];
  expect(daysToDrop(days, layout, NOON)).toEqual([95, 96, 97]);
  expect(daysToDrop([98], layout, 101 * DAY_MS - 1)).toEqual([]);
  expect(daysToDrop([98], layout, 101 * DAY_MS)).toEqual([98]);
  expect(() => daysToDrop(days, { ...layout, retentionMs: NaN }, NOON)).toThrow('NaN');
});

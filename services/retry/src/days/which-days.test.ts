import { expect, test } from '@jest/globals';
import { DAY_MS } from '@posthorn/domain/ids/days.ts';
import { daySteps, daysToDrop } from './which-days.ts';

const NOON = 100.5 * DAY_MS;
const layout = { beginMs: 0, retentionMs: 2 * DAY_MS };

test('the days that are needed come first, then what other days lack, and drops are the last', () => {
  const found = { messages: [97, 99, 100], deliveries: [98] };
  const clocks = { databaseMs: NOON, certainMs: NOON };
  const steps = daySteps(found, layout, clocks).map(({ what, kind, day }) => [what, kind, day]);
  const needed = (kind: string) => [100, 101, 102, 103].map((day) => ['complete', kind, day]);
  expect(steps).toEqual([
    ...needed('messages'),
    ...needed('deliveries'),
    ['complete', 'messages', 99],
    ['complete', 'deliveries', 98],
    ['drop', 'messages', 97],
  ]);
});

test('a day is dropped when its last millisecond has expired', () => {
  const days = [95, 96, 97, 98, 103];
  expect(daysToDrop(days, layout, NOON)).toEqual([95, 96, 97]);
  expect(daysToDrop([98], layout, 101 * DAY_MS - 1)).toEqual([]);
  expect(daysToDrop([98], layout, 101 * DAY_MS)).toEqual([98]);
  expect(() => daysToDrop(days, { ...layout, retentionMs: NaN }, NOON)).toThrow('NaN');
});

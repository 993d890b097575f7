import { expect, test } from '@jest/globals';
import { DAY_MS } from '@posthorn/domain/ids.ts';
import { daysToHave } from './days-to-have.ts';

const NOON = 100.5 * DAY_MS;

test('today and the three days after it have a collection', () => {
  expect(daysToHave({ beginMs: 0 }, NOON)).toEqual([100, 101, 102, 103]);
});

test('no day has one before days begin, and the day in which they begin has one', () => {
  expect(daysToHave({ beginMs: Infinity }, NOON)).toEqual([]);
  expect(daysToHave({ beginMs: 102 * DAY_MS - 1 }, NOON)).toEqual([101, 102, 103]);
  expect(daysToHave({ beginMs: 102 * DAY_MS }, NOON)).toEqual([102, 103]);
});

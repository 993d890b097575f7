import { expect, test } from '@jest/globals';
import { createArrivals } from './arrivals.ts';

test('keeps the time of the first arrival and counts all of them', () => {
  let nowMs = 10;
  const arrivals = createArrivals(() => nowMs);
  arrivals.note('msg_1', 3);
  nowMs = 20;
  arrivals.note('msg_1', 3);
  expect(arrivals.firstAtMs('msg_1', 3)).toBe(10);
  expect(arrivals.count('msg_1', 3)).toBe(2);
  expect(arrivals.total()).toBe(2);
});

test('counts one message at two endpoints as two deliveries, not as a duplicate', () => {
  const arrivals = createArrivals(() => 0);
  arrivals.note('msg_1', 1);
  arrivals.note('msg_1', 2);
  expect(arrivals.count('msg_1', 1)).toBe(1);
  expect(arrivals.firstAtMs('msg_1', 3)).toBeUndefined();
});

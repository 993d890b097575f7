import { expect, test } from '@jest/globals';
import { createTimeLeft } from './time-left.ts';

test('a wait gets the requested time, what is left of the run, or a minimum', () => {
  let nowMs = 0;
  const { atMost } = createTimeLeft(1_000, () => nowMs);
  expect(atMost(300, 400)).toBe(300);
  nowMs = 500_000;
  expect(atMost(300, 400)).toBe(100);
  expect(atMost(300, 490)).toBe(15);
  expect(atMost(5, 490)).toBe(5);
});

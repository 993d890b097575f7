import { expect, test } from '@jest/globals';
import { mibPerMinute } from './soak.ts';

test('the growth of memory is the slope of a line through the samples', () => {
  const at = (minutes: number, mib: number) => ({ atMs: minutes * 60_000, bytes: mib * 2 ** 20 });
  expect(mibPerMinute([at(0, 100), at(1, 102), at(2, 104)])).toBeCloseTo(2);
  expect(mibPerMinute([at(0, 100), at(1, 90), at(2, 100)])).toBeCloseTo(0);
  expect(mibPerMinute([at(0, 100)])).toBe(0);
});

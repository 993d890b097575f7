import { expect, test } from '@jest/globals';
import { maxWaitMsAt } from './max-wait.ts';

test('the wait of an attempt for its endpoint is half a minute, and shrinks to a second before the memory is full', () => {
  const shares = [0, 0.25, 0.5, 0.75, 1, 1.5];
  expect(shares.map(maxWaitMsAt)).toEqual([30_000, 30_000, 15_500, 1_000, 1_000, 1_000]);
});

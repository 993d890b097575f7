import { expect, test } from '@jest/globals';
import { slicesOf } from './slices-of.ts';

test('items come in slices of at most the size, in their order', () => {
  expect(slicesOf([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
  expect(slicesOf([1, 2], 2)).toEqual([[1, 2]]);
  expect(slicesOf([], 2)).toEqual([]);
});

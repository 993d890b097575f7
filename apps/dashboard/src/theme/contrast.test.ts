import { expect, test } from '@jest/globals';
import { isDarkEnough } from './contrast.ts';

test.each([
  ['#000000', true],
  ['#1864ab', true],
  ['#767676', true],
  ['#777777', false],
  ['#ffffff', false],
  ['red', false],
])('white text on %s can be read: %s', (color, expected) => {
  expect(isDarkEnough(color)).toBe(expected);
});

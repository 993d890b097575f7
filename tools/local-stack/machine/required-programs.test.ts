import { expect, test } from '@jest/globals';
import { majorOf } from './required-programs.ts';

test.each([
  ['    java.specification.version = 17\n', 17],
  ['    java.specification.version = 1.8\n', 1],
  ['null', 0],
])('the Java version in %j is %i', (settings, major) => {
  expect(majorOf(settings)).toBe(major);
});

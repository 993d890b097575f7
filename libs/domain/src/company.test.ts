import { describe, expect, test } from '@jest/globals';
import { companyStatusOf, suspensionDefersMs } from './company.ts';

const at = new Date(1);

test.each([
  [{}, 'active'],
  [{ suspendedAt: at }, 'suspended'],
  [{ suspendedAt: at, removalAt: at }, 'removing'],
  [{ removalAt: at }, 'removing'],
])('a company with the marks %j is %s', (marks, status) => {
  expect(companyStatusOf(marks)).toBe(status);
});

describe('an attempt of a suspended company is deferred', () => {
  test.each([
    ['for five seconds at first', 0, 5_000],
    ['for five seconds when the clock of the store is ahead', -3_000, 5_000],
    ['for a quarter of the time that it is suspended', 120_000, 30_000],
    ['for half an hour at most', 7 * 86_400_000, 1_800_000],
  ])('%s', (_how, suspendedForMs, expected) => {
    expect(suspensionDefersMs(suspendedForMs)).toBe(expected);
  });
});

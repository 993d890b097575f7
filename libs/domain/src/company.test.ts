import { expect, test } from '@jest/globals';
import { companyStatusOf } from './company.ts';

const at = new Date(1);

test.each([
  [{}, 'active'],
  [{ suspendedAt: at }, 'suspended'],
  [{ suspendedAt: at, removalAt: at }, 'removing'],
  [{ removalAt: at }, 'removing'],
])('a company with the marks %j is %s', (marks, status) => {
  expect(companyStatusOf(marks)).toBe(status);
});

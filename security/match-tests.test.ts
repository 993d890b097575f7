import { expect, test } from '@jest/globals';
import { findTests } from '../test/runner/find-tests.ts';
import { CHECKS } from './checks.ts';
import { filesOf, resultOf } from './match-tests.ts';
import { isGood, verdictOf } from './result.ts';

const CHECK = { id: 'S1', tried: 'x', holds: 'y', tests: ['src/a.test', 'src/b.test'] };
const passing = (path: string) => ({
  path,
  hasRun: true,
  tests: [{ name: `${path} works`, status: 'passed' }],
});

test('every check has test files, and every part of a path matches one', () => {
  const files = Object.values(findTests([])).flat();
  for (const check of CHECKS) {
    for (const part of check.tests) {
      expect(filesOf({ ...check, tests: [part] }, files)).not.toEqual([]);
    }
  }
  expect(new Set(CHECKS.map(({ id }) => id)).size).toBe(CHECKS.length);
});

test('a check is good when its tests have passed', () => {
  const result = resultOf(CHECK, ['src/a.test.ts', 'src/b.test.ts'].map(passing));
  expect(result).toMatchObject({ passed: 2, failed: [], skipped: [] });
  expect(verdictOf(result)).toBe('good');
});

test('a check is not good when a test failed, a file did not run, or nothing passed', () => {
  const failing = { ...passing('src/b.test.ts'), tests: [{ name: 'b', status: 'failed' }] };
  expect(resultOf(CHECK, [passing('src/a.test.ts'), failing]).failed).toEqual(['b']);
  const broken = { path: 'src/b.test.ts', hasRun: false, tests: [] };
  const result = resultOf(CHECK, [passing('src/a.test.ts'), broken]);
  expect(verdictOf(result)).toBe('FAILED (1)');
  expect(isGood({ ...result, passed: 0, failed: [] })).toBe(false);
});

test('a check whose test is missing is an error', () => {
  expect(() => resultOf(CHECK, [passing('src/a.test.ts')])).toThrow('S1: no test src/b.test');
});

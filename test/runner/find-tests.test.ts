import { describe, expect, test } from '@jest/globals';
import { findTests, readSelection } from './find-tests.ts';

describe('npm test', () => {
  test('runs everything without arguments', () => {
    expect(readSelection([])).toEqual({ patterns: [], testName: undefined, isAll: true });
  });

  test('takes patterns and the name of a test', () => {
    const selection = { patterns: ['retry', 'e2e'], testName: 'is late', isAll: false };
    expect(readSelection(['retry', 'e2e', '-t', 'is late'])).toEqual(selection);
    expect(() => readSelection(['--watch'])).toThrow('--watch');
  });
});

describe('the test files', () => {
  const all = findTests([]);

  test('are found in every project', () => {
    expect(all.unit).toContain('test/runner/find-tests.test.ts');
    expect(all.e2e?.every((path) => path.startsWith('test/e2e/'))).toBe(true);
    expect(all.integration?.every((path) => path.endsWith('.int.test.ts'))).toBe(true);
  });

  test('that match a part of a path or the name of a project are selected once', () => {
    expect(findTests(['runner/find', 'find-tests'])).toEqual({
      unit: ['test/runner/find-tests.test.ts'],
    });
    expect(findTests(['integration', 'runner/find'])).toEqual({
      unit: ['test/runner/find-tests.test.ts'],
      integration: all.integration,
    });
  });

  test('must match every pattern that is given', () => {
    expect(() => findTests(['runner', 'no-such-file'])).toThrow(
      'No test file has "no-such-file" in its path.',
    );
  });
});

import { describe, expect, test } from '@jest/globals';
import { findTests, readSelection } from './find-tests.ts';

describe('npm test', () => {
  test('runs everything without arguments', () => {
    expect(readSelection([])).toEqual({
      patterns: [],
      testName: undefined,
      isAll: true,
      isSecured: false,
    });
  });

  test('takes patterns and the name of a test', () => {
    const selection = {
      patterns: ['retry', 'e2e'],
      testName: 'is late',
      isAll: false,
      isSecured: false,
    };
    expect(readSelection(['retry', 'e2e', '-t', 'is late'])).toEqual(selection);
    expect(() => readSelection(['--watch'])).toThrow('--watch');
  });

  test('takes the stories of the contract and others for secured stores, or those that are named', () => {
    const { patterns, isAll, isSecured } = readSelection(['--secured']);
    expect({ isAll, isSecured }).toEqual({ isAll: false, isSecured: true });
    expect(findTests(patterns).e2e).toContain('test/e2e/contract/deliver.test.ts');
    expect(findTests(patterns).integration).toBeUndefined();
    expect(readSelection(['--secured', 'rotation']).patterns).toEqual(['rotation']);
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

  test('with a tag in a title are selected by the tag', () => {
    const tagged = Object.values(findTests(['[security]'])).flat();
    expect(tagged).toContain('test/e2e/contract-after-retries/tenants.test.ts');
    expect(tagged).not.toContain('test/runner/find-tests.test.ts');
    expect(() => findTests(['[no-such-tag]'])).toThrow('[no-such-tag]');
  });

  test('must match every pattern that is given', () => {
    expect(() => findTests(['runner', 'no-such-file'])).toThrow(
      'No test file matches "no-such-file".',
    );
  });
});

import { describe, expect, test } from '@jest/globals';
import { findChanges } from './changed-files.ts';

describe('the changes that npm run check looks at', () => {
  function found(answers: Record<string, string[]>): string[] | null {
    return findChanges((command = '') => answers[command] ?? []);
  }

  test('are those since the main branch and those that are not committed, each once', () => {
    const both = 'test/runner/changed-files.ts';
    const answers = { 'merge-base': ['abc'], diff: [both, 'README.md'], 'ls-files': [both] };
    expect(found(answers)).toEqual([both, 'README.md']);
  });

  test('leave out files that are gone', () => {
    expect(found({ diff: ['README.md', 'no/such/file.ts'] })).toEqual(['README.md']);
  });

  test.each([
    ['package-lock.json'],
    ['tsconfig.base.json'],
    ['test/runner/native-environment.mjs'],
  ])('may concern every file when %s has changed', (path) => {
    expect(found({ diff: [path, 'README.md'] })).toBeNull();
  });

  test('are every file when nothing differs', () => {
    expect(found({})).toBeNull();
  });
});

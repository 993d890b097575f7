import { describe, expect, test } from '@jest/globals';
import { formatResult } from './command.ts';

describe('a printed result', () => {
  test('has a line for each field, with times in ISO 8601', () => {
    const result = { companyId: 'comp_1', createdAt: new Date(0), keys: 2, note: null };
    expect(formatResult(result)).toBe(
      'companyId: comp_1\ncreatedAt: 1970-01-01T00:00:00.000Z\nkeys: 2\nnote: null',
    );
  });

  test('indents nested fields', () => {
    expect(formatResult({ skipped: { cut: 1, source: { topic: 't' } } })).toBe(
      'skipped:\n  cut: 1\n  source:\n    topic: t',
    );
  });

  test('separates the entries of a list by an empty line', () => {
    expect(formatResult([{ a: 1 }, { a: 2 }])).toBe('a: 1\n\na: 2');
  });

  test('contains no control characters of names and values', () => {
    expect(formatResult({ name: 'red \u001b[31m\nmore' })).toBe('name: red \\u001b[31m\\u000amore');
  });
});

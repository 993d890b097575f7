import { expect, test } from '@jest/globals';
import { httpUrl } from './http-url.ts';

const problemsOf = (text: string): string[] =>
  httpUrl.safeParse(text).error?.issues.map(({ message }) => message) ?? [];

test.each(['https://example.com/hooks', 'http://127.0.0.1:8080'])('%s may be set', (text) => {
  expect(problemsOf(text)).toEqual([]);
});

test.each([
  ['ftp://example.com', 'must be an http or https URL'],
  ['example.com', 'must be an http or https URL'],
  ['https://user@example.com', 'must not have a user or a password'],
  ['https://user:word@example.com', 'must not have a user or a password'],
])('%s is refused: it %s', (text, problem) => {
  expect(problemsOf(text)).toContain(problem);
});

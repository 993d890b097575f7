import { describe, expect, it, test } from '@jest/globals';
import { httpUrl, wholeNumber } from './settings.ts';

describe('wholeNumber', () => {
  it.each([
    ['100', 100],
    ['60000', 60_000],
  ])('reads %s', (text, value) => {
    expect(wholeNumber(100, 60_000).parse(text)).toBe(value);
  });

  it.each(['99', '60001', '100.5', 'many'])('refuses %s and names the limits', (text) => {
    const refusal = wholeNumber(100, 60_000, 'milliseconds').safeParse(text).error;
    expect(refusal?.issues[0]?.message).toBe('must be milliseconds from 100 to 60000');
  });

  it('takes any number from the least one when there is no largest', () => {
    const schema = wholeNumber(1, Infinity);
    expect(schema.parse('1000000000')).toBe(1_000_000_000);
    expect(schema.safeParse('0').error?.issues[0]?.message).toBe('must be a whole number from 1');
  });
});

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

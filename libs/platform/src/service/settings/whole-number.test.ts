import { describe, expect, it } from '@jest/globals';
import { wholeNumber } from './whole-number.ts';

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

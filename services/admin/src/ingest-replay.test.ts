import { describe, expect, test } from '@jest/globals';
import { parseReplay } from './ingest-replay.ts';

describe('a replay of rejected records', () => {
  test('is of all, of all with a code, or of one', () => {
    expect(parseReplay({ all: true })).toEqual({ only: null, code: undefined });
    expect(parseReplay({ all: true, code: 'not_found' })).toEqual({
      only: null,
      code: 'not_found',
    });
    const only = { partition: 3, offset: 42 };
    expect(parseReplay({ partition: '3', offset: '42' })).toEqual({ only, code: undefined });
  });

  test.each([
    ['nothing', {}, 'Give --all, or --partition and --offset'],
    ['a code alone', { code: 'not_found' }, 'Give --all, or --partition and --offset'],
    ['all and one', { all: true, partition: '1', offset: '2' }, 'Give --all'],
    ['half a place', { partition: '1' }, '--offset'],
    ['a place that is none', { partition: 'x', offset: '-1' }, '--partition'],
    ['one with a code', { partition: '1', offset: '2', code: 'a' }, '--code goes with --all only'],
  ])('must not be of %s', (_what, options, message) => {
    expect(() => parseReplay(options)).toThrow(message);
  });
});

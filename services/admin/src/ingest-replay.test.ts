import { describe, expect, test } from '@jest/globals';
import { parseReplay } from './ingest-replay.ts';

describe('a replay of rejected records', () => {
  test('is of all, of all that match, or of one', () => {
    expect(parseReplay({ all: true })).toEqual({ only: null, filter: {} });
    const options = {
      code: 'not_found',
      source: 'shop.events',
      since: '2026-08-01T09:00:00Z',
      until: '2026-08-01T12:00:00+02:00',
    };
    expect(parseReplay({ all: true, ...options })).toEqual({
      only: null,
      filter: {
        code: 'not_found',
        source: 'shop.events',
        since: Date.UTC(2026, 7, 1, 9),
        until: Date.UTC(2026, 7, 1, 10),
      },
    });
    const only = { partition: 3, offset: 42 };
    expect(parseReplay({ partition: '3', offset: '42' })).toEqual({ only, filter: {} });
  });

  test.each([
    ['nothing', {}, 'Give --all, or --partition and --offset'],
    ['a code alone', { code: 'not_found' }, 'Give --all, or --partition and --offset'],
    ['all and one', { all: true, partition: '1', offset: '2' }, 'Give --all'],
    ['half a place', { partition: '1' }, '--offset'],
    ['a place that is none', { partition: 'x', offset: '-1' }, '--partition'],
    ['one with a code', { partition: '1', offset: '2', code: 'a' }, '--code goes with --all only'],
    [
      'one with a time',
      { partition: '1', offset: '2', since: '2026-08-01T09:00:00Z' },
      '--since goes with --all only',
    ],
    ['a filter alone', { source: 'a' }, 'Give --all, or --partition and --offset'],
    ['a day that does not exist', { all: true, until: '2026-02-30T00:00:00Z' }, '--until must be'],
  ])('must not be of %s', (_what, options, message) => {
    expect(() => parseReplay(options)).toThrow(message);
  });
});

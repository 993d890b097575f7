import { describe, expect, test } from '@jest/globals';
import {
  FAILED,
  sampleLetter,
  type SampleLetter,
} from '../../../../test/support/samples/sample-letter.ts';
import {
  matchesFilter,
  parseFilter,
  parseLimit,
  parsePlace,
  parseSelection,
} from './letter-filter.ts';
import { createLetterReader } from './read-letter.ts';

const read = createLetterReader('p.');
const OTHER = '3'.repeat(26);

const isMatch = (options: object, of: SampleLetter = {}): boolean =>
  matchesFilter(read(sampleLetter(of)), parseFilter(options), 'p.');

describe('a filter of dead letters', () => {
  test('matches every letter when it is empty', () => {
    expect(isMatch({})).toBe(true);
  });

  test.each([
    [{ reason: 'schedule_exhausted' }, { reason: 'message_missing' }],
    [{ sourceTopic: 'delivery-failed' }, { sourceTopic: 'retry-due' }],
    [{ sourceTopic: 'p.delivery-failed' }, { sourceTopic: 'p.retry-due' }],
    [{ webhook: FAILED.webhookId }, { webhook: `wh_${OTHER}` }],
    [{ message: FAILED.messageId }, { message: `msg_${OTHER}` }],
    [{ since: '1970-01-01T00:00:05Z' }, { since: '1970-01-01T00:00:05.001Z' }],
    [{ until: '1970-01-01T01:00:05+01:00' }, { until: '1970-01-01T00:00:04.999Z' }],
  ])('%j matches and %j does not', (matching, other) => {
    expect([isMatch(matching), isMatch(other)]).toEqual([true, false]);
  });

  test('finds the webhook of an unreadable record by the key of the record', () => {
    const value = Buffer.from('no');
    expect(isMatch({ webhook: FAILED.webhookId }, { value })).toBe(true);
    expect(isMatch({ webhook: FAILED.webhookId }, { value, key: 'other' })).toBe(false);
    expect(isMatch({ message: FAILED.messageId }, { value })).toBe(false);
  });

  test('is refused with every invalid option', () => {
    expect(() => parseFilter({ reason: 'bored', since: '2026-08-01', sourceTopic: 'x' })).toThrow(
      /^--reason must be one of .*\n--since must be an ISO time with a zone/,
    );
    expect(() => parseFilter({ webhook: 'msg_1' })).toThrow('--webhook must be an id such as wh_…');
  });
});

describe('the selection of a replay', () => {
  test('is one letter, those that match, or all', () => {
    expect(parseSelection('3:42', {})).toMatchObject({ place: { partition: 3, offset: 42 } });
    const filtered = { all: false, reason: 'message_missing' };
    const { reason } = filtered;
    expect(parseSelection(undefined, filtered)).toEqual({ place: null, filter: { reason } });
    expect(parseSelection(undefined, { all: true })).toEqual({ place: null, filter: {} });
  });

  test('must be given in exactly one way', () => {
    expect(() => parseSelection(undefined, {})).toThrow('--all for every dead letter');
    const filtered = { all: false, reason: 'message_missing' };
    expect(() => parseSelection('3:42', filtered)).toThrow('not more than one of them');
    expect(() => parseSelection(undefined, { ...filtered, all: true })).toThrow('not more than');
  });

  test.each(['', '3', '3:', 'a:1', '3:1:2', '-1:0'])('must not be the id %j', (id) => {
    expect(() => parsePlace(id)).toThrow('id must be partition:offset');
  });
});

test.each(['0', '10001', 'x', '1.5'])('a list must not have %s entries', (limit) => {
  expect(parseLimit('10000')).toBe(10_000);
  expect(() => parseLimit(limit)).toThrow('--limit must be');
});

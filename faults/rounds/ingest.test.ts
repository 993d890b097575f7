import { describe, expect, test } from '@jest/globals';
import { findingsOf } from './ingest.ts';

const ends = new Map([
  [0, 3],
  [1, 1],
]);
const bad = (code: string, expected = code) => ({ code, expected });

describe('the audit of ingested records', () => {
  test('finds nothing when each record is accepted once and in order, or rejected as planted', () => {
    const rejected = new Map([['0/1', bad('invalid_json')]]);
    expect(findingsOf(ends, { stored: ['0/0', '1/0', '0/2'], rejected })).toEqual([]);
  });

  test('finds what is lost, doubled, in disorder, and rejected for another reason', () => {
    const rejected = new Map([['0/2', bad('not_found', 'none')]]);
    const stored = ['0/1', '0/0', '0/0', '0/2'];
    expect(findingsOf(ends, { stored, rejected })).toEqual([
      'records neither accepted nor rejected: 1, such as 1/0',
      'records accepted twice: 1, such as 0/0',
      'records accepted and rejected: 1, such as 0/2',
      'records rejected for another reason: 1, such as 0/2 (not_found instead of none)',
      'ids that are not in the order of the records: 2, such as 0/0',
    ]);
  });
});

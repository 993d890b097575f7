import { describe, expect, test } from '@jest/globals';
import { isTooLarge } from './too-large.ts';

const refused = (fields: object): Error => Object.assign(new Error('refused'), fields);

describe('a send that a broker refused', () => {
  test('was too large where kafkajs says so, itself or by its cause', () => {
    const refusal = refused({ type: 'MESSAGE_TOO_LARGE' });
    expect([refusal, new Error('gave up', { cause: refusal })].map(isTooLarge)).toEqual([
      true,
      true,
    ]);
  });

  test('was too large where one partition of many says so to @platformatic/kafka', () => {
    const other = refused({ apiId: 'NOT_LEADER_OR_FOLLOWER' });
    const refusal = refused({ apiId: 'RECORD_LIST_TOO_LARGE' });
    const response = new AggregateError([other, refusal]);
    expect(isTooLarge(new AggregateError([response]))).toBe(true);
    expect(isTooLarge(new AggregateError([other]))).toBe(false);
  });

  test('was refused for something else, or not by a broker', () => {
    expect([refused({ type: 'UNKNOWN' }), new Error('closed'), 'text'].map(isTooLarge)).toEqual([
      false,
      false,
      false,
    ]);
  });
});

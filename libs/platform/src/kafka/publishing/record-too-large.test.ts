import { describe, expect, test } from '@jest/globals';
import { isRecordTooLarge } from './record-too-large.ts';

const refused = (fields: object): Error => Object.assign(new Error('refused'), fields);

describe('a send that a broker refuses', () => {
  test('is too large when an error of kafkajs says so, itself or by its cause', () => {
    const refusal = refused({ type: 'MESSAGE_TOO_LARGE' });
    expect([refusal, new Error('gave up', { cause: refusal })].map(isRecordTooLarge)).toEqual([
      true,
      true,
    ]);
  });

  test('is too large when the error of one partition says so with @platformatic/kafka', () => {
    const other = refused({ apiId: 'NOT_LEADER_OR_FOLLOWER' });
    const refusal = refused({ apiId: 'RECORD_LIST_TOO_LARGE' });
    const response = new AggregateError([other, refusal]);
    expect(isRecordTooLarge(new AggregateError([response]))).toBe(true);
    expect(isRecordTooLarge(new AggregateError([other]))).toBe(false);
  });

  test('is not too large after any other error', () => {
    expect(
      [refused({ type: 'UNKNOWN' }), new Error('closed'), 'text'].map(isRecordTooLarge),
    ).toEqual([false, false, false]);
  });
});

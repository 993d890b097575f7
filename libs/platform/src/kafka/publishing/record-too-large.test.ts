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

  test('is not too large after any other error', () => {
    expect(
      [refused({ type: 'UNKNOWN' }), new Error('closed'), 'text'].map(isRecordTooLarge),
    ).toEqual([false, false, false]);
  });
});

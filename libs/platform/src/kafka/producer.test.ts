import { describe, expect, it, test } from '@jest/globals';
import { isRecordTooLarge, LeftOutError, mayRetry } from './producer.ts';

const noLeader = Object.assign(new Error('there is no leader'), { retriable: true });
const tooLarge = Object.assign(new Error('too large'), { retriable: false });
const wrapped = (name: string, cause: Error): Error =>
  Object.assign(new Error(cause.message, { cause }), { name });
const retriable = wrapped('KafkaJSNumberOfRetriesExceeded', noLeader);

describe('whether a send is retried', () => {
  it.each([
    { failures: 1, mayGoOn: true },
    { failures: 3, mayGoOn: true },
    { failures: 4, mayGoOn: false },
  ])('after $failures failures with nothing stored: $mayGoOn', ({ failures, mayGoOn }) => {
    const failed = { failures, isPartlyStored: false, elapsedMs: 0 };
    expect(mayRetry(retriable, failed)).toBe(mayGoOn);
  });

  it.each([
    { elapsedMs: 0, mayGoOn: true },
    { elapsedMs: 39_999, mayGoOn: true },
    { elapsedMs: 40_000, mayGoOn: false },
  ])(
    'stored in part, $elapsedMs ms after its begin and after many failures: $mayGoOn',
    ({ elapsedMs, mayGoOn }) => {
      const failed = { failures: 20, isPartlyStored: true, elapsedMs };
      expect(mayRetry(retriable, failed)).toBe(mayGoOn);
    },
  );

  it('not with nothing stored either, when its requests have taken 40 s', () => {
    const failed = { failures: 1, isPartlyStored: false, elapsedMs: 40_000 };
    expect(mayRetry(retriable, failed)).toBe(false);
  });

  it.each([
    [
      'nobody leads a partition when the leaders are asked for again',
      wrapped('KafkaJSNonRetriableError', noLeader),
      true,
    ],
    ['kafkajs has left records out', new LeftOutError('left out'), true],
    ['a record is too large', tooLarge, false],
    ['a record is too large, wrapped', wrapped('KafkaJSNonRetriableError', tooLarge), false],
    ['the producer has disconnected', new Error('The producer is disconnected'), false],
  ])('when %s: see the table', (_when, error, mayGoOn) => {
    expect(mayRetry(error, { failures: 1, isPartlyStored: true, elapsedMs: 0 })).toBe(mayGoOn);
  });
});

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

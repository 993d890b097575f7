import { describe, expect, it } from '@jest/globals';
import { mayRetry } from './may-retry.ts';

const retriable = Object.assign(new Error('not the leader'), {
  name: 'KafkaJSNumberOfRetriesExceeded',
});
const refused = Object.assign(new Error('too large'), { name: 'KafkaJSNonRetriableError' });

describe('whether a send is retried', () => {
  it.each([
    { failures: 1, mayGoOn: true },
    { failures: 3, mayGoOn: true },
    { failures: 4, mayGoOn: false },
  ])('after $failures failures with nothing stored: $mayGoOn', ({ failures, mayGoOn }) => {
    expect(mayRetry(retriable, { failures, partlyStoredForMs: null })).toBe(mayGoOn);
  });

  it.each([
    { partlyStoredForMs: 0, mayGoOn: true },
    { partlyStoredForMs: 29_999, mayGoOn: true },
    { partlyStoredForMs: 30_000, mayGoOn: false },
  ])(
    'stored in part for $partlyStoredForMs ms, after many failures: $mayGoOn',
    ({ partlyStoredForMs, mayGoOn }) => {
      expect(mayRetry(retriable, { failures: 20, partlyStoredForMs })).toBe(mayGoOn);
    },
  );

  it('never when a retry cannot help', () => {
    expect(mayRetry(refused, { failures: 1, partlyStoredForMs: null })).toBe(false);
    expect(mayRetry(refused, { failures: 1, partlyStoredForMs: 0 })).toBe(false);
  });
});

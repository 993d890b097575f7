import { expect, test } from '@jest/globals';
import { TimeoutError, withTimeout } from './with-timeout.ts';

test('a step that ends in time gives its result', async () => {
  expect(await withTimeout(Promise.resolve(7), 1_000)).toBe(7);
});

test('a step that fails in time gives its error', async () => {
  const error = new Error('away');
  await expect(withTimeout(Promise.reject(error), 1_000)).rejects.toBe(error);
});

test('a step that takes too long ends with TimeoutError', async () => {
  const endless = new Promise(() => undefined);
  await expect(withTimeout(endless, 1)).rejects.toThrow(TimeoutError);
  await expect(withTimeout(endless, 1)).rejects.toThrow('no answer within 1 ms');
});

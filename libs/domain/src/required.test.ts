import { expect, test } from '@jest/globals';
import { ImpossibleError, required, requiredAt } from './required.ts';

test('a required value is returned, a falsy one too', () => {
  expect(required(new Map([['a', 0]]), 'a', 'count')).toBe(0);
  expect(requiredAt([''], 0, 'name')).toBe('');
});

test('a missing required value throws an error that says what is missing, and where', () => {
  expect(() => required(new Map([[5_000, 'retry.5s']]), 7_000, 'delay topic')).toThrow(
    new ImpossibleError('no delay topic for 7000'),
  );
  expect(() => requiredAt(['x'], 1, 'delivery of the batch')).toThrow(
    new ImpossibleError('no delivery of the batch at index 1'),
  );
});

import { expect, test } from '@jest/globals';
import { isIntact, payloadOf, readPayload } from './payload.ts';

test('a payload tells its run and number, and each changed byte of it is noticed', () => {
  const text = payloadOf('r1', 42);
  expect(readPayload(text)).toEqual({ run: 'r1', n: 42 });
  expect(isIntact(Buffer.from(text), 'r1', 42)).toBe(true);
  expect(isIntact(Buffer.from(JSON.stringify(JSON.parse(text))), 'r1', 42)).toBe(false);
  expect(isIntact(Buffer.from(text.replace('xx', 'xy')), 'r1', 42)).toBe(false);
  expect(isIntact(Buffer.from(text), 'r1', 43)).toBe(false);
  expect(readPayload('{}')).toBeNull();
});

import { expect, test } from '@jest/globals';
import { BEHIND_MS, restMs } from './sweep-pace.ts';

test('a sweep that keeps up rests for as long as it works', () => {
  expect(restMs({ tookMs: 40, behindMs: BEHIND_MS })).toBe(40);
});

test('a sweep that is behind does not rest', () => {
  expect(restMs({ tookMs: 40, behindMs: BEHIND_MS + 1 })).toBe(0);
});

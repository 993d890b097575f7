import { expect, test } from '@jest/globals';
import { boundAhead } from './clock-bounds.ts';

test('each reply bounds how far another clock is ahead, until one says otherwise', () => {
  const first = boundAhead(null, { askedAtMs: 100, repliedAtMs: 150, theirMs: 1_120 });
  expect(first).toEqual({ ahead: { leastMs: 970, mostMs: 1_021 }, isAsBefore: true });
  const second = boundAhead(first.ahead, { askedAtMs: 200, repliedAtMs: 300, theirMs: 1_280 });
  expect(second).toEqual({ ahead: { leastMs: 980, mostMs: 1_021 }, isAsBefore: true });
  const wasSet = boundAhead(second.ahead, { askedAtMs: 400, repliedAtMs: 401, theirMs: 900 });
  expect(wasSet).toEqual({ ahead: { leastMs: 499, mostMs: 501 }, isAsBefore: false });
});

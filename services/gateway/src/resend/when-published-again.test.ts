import { describe, expect, test } from '@jest/globals';
import { isDueDespiteDeferral, mayBeLost, type Published } from './when-published-again.ts';

const MINUTE_MS = 60_000;
const HALF_DAY_MS = 12 * 60 * MINUTE_MS;

test('a delivery that was not published yet is due, whatever its circuit', () => {
  expect([mayBeLost(undefined, 0), isDueDespiteDeferral(undefined, 0)]).toEqual([true, true]);
});

describe('a delivery without a result', () => {
  test('may be lost after two minutes, however often it was published', () => {
    for (const times of [1, 9]) {
      const published = { atMs: 0, times };
      expect(mayBeLost(published, 2 * MINUTE_MS)).toBe(false);
      expect(mayBeLost(published, 2 * MINUTE_MS + 1)).toBe(true);
    }
  });

  test('is published ten times in half a day while its circuit is open', () => {
    const minutes: number[] = [];
    let published: Published | undefined;
    for (let nowMs = 0; nowMs < HALF_DAY_MS; nowMs += MINUTE_MS) {
      if (!mayBeLost(published, nowMs) || !isDueDespiteDeferral(published, nowMs)) continue;
      minutes.push(nowMs / MINUTE_MS);
      published = { atMs: nowMs, times: (published?.times ?? 0) + 1 };
    }
    expect(minutes).toEqual([0, 5, 14, 31, 64, 129, 250, 371, 492, 613]);
  });
});

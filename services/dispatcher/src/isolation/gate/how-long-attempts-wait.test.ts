import { describe, expect, it, test } from '@jest/globals';
import { ATTEMPT, ENDPOINT } from '../../../../../test/support/isolation/gate-cases.ts';
import { expectedWaitMs, maxWaitMsAt } from './how-long-attempts-wait.ts';

test('attempts may wait half a minute for their endpoint, shrinking to a second before the memory is full', () => {
  const shares = [0, 0.25, 0.5, 0.75, 1, 1.5];
  expect(shares.map(maxWaitMsAt)).toEqual([30_000, 30_000, 15_500, 1_000, 1_000, 1_000]);
});

describe('the expected wait', () => {
  it('is the longest obstacle plus the time for the attempts ahead', () => {
    const endpoint = { ...ENDPOINT, holdInMs: 300, paceInMs: 200, spacingMs: 50 };
    expect(expectedWaitMs({ ...ATTEMPT, ahead: 4 }, endpoint)).toBe(500);
  });

  it('counts the attempts ahead once when turns are already booked behind them', () => {
    const endpoint = { ...ENDPOINT, bookedInMs: 32_000, spacingMs: 1_000 };
    expect(expectedWaitMs({ ...ATTEMPT, ahead: 30 }, endpoint)).toBe(32_000);
  });
});

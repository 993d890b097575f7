import { describe, expect, test } from '@jest/globals';
import { createOpenLoopSchedule } from './loops.ts';

describe('the schedule of an open loop', () => {
  test('spreads the messages evenly over the time', () => {
    const { total, intendedMs } = createOpenLoopSchedule(400, 3);
    expect(total).toBe(1_200);
    expect([0, 1, 400, 1_199].map(intendedMs)).toEqual([0, 2.5, 1_000, 2_997.5]);
  });

  test('makes everything that a stall has delayed due at once, with the original times', () => {
    const { dueCount, intendedMs } = createOpenLoopSchedule(400, 3);
    expect(dueCount(0)).toBe(1);
    expect(dueCount(1_000)).toBe(401);
    expect(intendedMs(dueCount(1_000) - 1)).toBe(1_000);
  });

  test('has nothing due before its start, and at most its total', () => {
    const { dueCount, total } = createOpenLoopSchedule(650, 2);
    expect(dueCount(60_000)).toBe(total);
    expect(dueCount(-1)).toBe(0);
  });
});

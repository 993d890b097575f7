import { beforeEach, expect, test } from '@jest/globals';
import { createJudgeableTime, type JudgeableTime } from './judgeable-time.ts';

let clockMs: number;
let isJudgeable: boolean;
let time: JudgeableTime;

beforeEach(() => {
  [clockMs, isJudgeable] = [500, true];
  time = createJudgeableTime({ isJudgeable: () => isJudgeable, monotonicMs: () => clockMs });
});

function tickAfter(ms: number): void {
  clockMs += ms;
  time.tick();
}

test('the time in which the stores answer counts, and no other', () => {
  tickAfter(50);
  isJudgeable = false;
  tickAfter(50);
  tickAfter(50);
  isJudgeable = true;
  tickAfter(50);
  expect(time.countedMs()).toBe(100);
});

test('the time in which the process slept counts as a second', () => {
  tickAfter(3_600_000);
  expect(time.countedMs()).toBe(1_000);
});

import { beforeEach, expect, test } from '@jest/globals';
import { createOutageFreeClock, type OutageFreeClock } from './outage-free-clock.ts';

let clockMs: number;
let areStoresUp: boolean;
let time: OutageFreeClock;

beforeEach(() => {
  [clockMs, areStoresUp] = [500, true];
  time = createOutageFreeClock({ areStoresUp: () => areStoresUp, monotonicMs: () => clockMs });
});

function tickAfter(ms: number): void {
  clockMs += ms;
  time.tick();
}

test('the time in which the stores answer counts, and no other', () => {
  tickAfter(50);
  areStoresUp = false;
  tickAfter(50);
  tickAfter(50);
  areStoresUp = true;
  tickAfter(50);
  expect(time.countedMs()).toBe(100);
});

test('the time in which the process slept counts as a second', () => {
  tickAfter(3_600_000);
  expect(time.countedMs()).toBe(1_000);
});

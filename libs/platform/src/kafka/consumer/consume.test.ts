import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type ClockRollbackWatch, watchForClockRollback } from './consume.ts';

const HOUR_MS = 3_600_000;

let nowMs = 0;
let monotonicMs = 0;
let rollbacks: number[] = [];
let watch: ClockRollbackWatch;

beforeEach(() => {
  [nowMs, monotonicMs, rollbacks] = [1_700_000_000_000, 0, []];
  watch = watchForClockRollback({
    nowMs: () => nowMs,
    monotonicMs: () => monotonicMs,
    onRollback: (byMs) => rollbacks.push(byMs),
  });
});

afterEach(() => {
  watch.stop();
});

function tickAfter(passedMs: number, setMs = 0): void {
  monotonicMs += passedMs;
  nowMs += passedMs + setMs;
  watch.tick();
}

describe('the clock rollback watch', () => {
  test('reports each rollback once', () => {
    tickAfter(1_000, -HOUR_MS);
    tickAfter(1_000);
    tickAfter(1_000, -HOUR_MS);
    expect(rollbacks).toEqual([HOUR_MS, HOUR_MS]);
  });

  test('reports nothing while the clock runs, is set forward or is corrected by a second', () => {
    tickAfter(60_000);
    tickAfter(1_000, HOUR_MS);
    tickAfter(1_000, -1_000);
    expect(rollbacks).toEqual([]);
  });

  test('reports the return from a jump forward', () => {
    tickAfter(1_000, HOUR_MS);
    tickAfter(1_000, -HOUR_MS);
    expect(rollbacks).toEqual([HOUR_MS]);
  });
});

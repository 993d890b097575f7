import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { watchForSetbacks, type SetbackWatch } from './watch-for-setbacks.ts';

const HOUR_MS = 3_600_000;

let nowMs = 0;
let monotonicMs = 0;
let setbacks: number[] = [];
let watch: SetbackWatch;

beforeEach(() => {
  [nowMs, monotonicMs, setbacks] = [1_700_000_000_000, 0, []];
  watch = watchForSetbacks({
    nowMs: () => nowMs,
    monotonicMs: () => monotonicMs,
    onSetback: (byMs) => setbacks.push(byMs),
  });
});

afterEach(() => {
  watch.stop();
});

function lookAfter(passedMs: number, setMs = 0): void {
  monotonicMs += passedMs;
  nowMs += passedMs + setMs;
  watch.tick();
}

describe('a watch for setbacks of the clock', () => {
  test('tells of each one, once', () => {
    lookAfter(1_000, -HOUR_MS);
    lookAfter(1_000);
    lookAfter(1_000, -HOUR_MS);
    expect(setbacks).toEqual([HOUR_MS, HOUR_MS]);
  });

  test('is silent while the clock goes on, jumps ahead or is set right by a second', () => {
    lookAfter(60_000);
    lookAfter(1_000, HOUR_MS);
    lookAfter(1_000, -1_000);
    expect(setbacks).toEqual([]);
  });

  test('tells of the return from a jump ahead', () => {
    lookAfter(1_000, HOUR_MS);
    lookAfter(1_000, -HOUR_MS);
    expect(setbacks).toEqual([HOUR_MS]);
  });
});

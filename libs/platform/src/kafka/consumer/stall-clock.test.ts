import { beforeEach, describe, expect, test } from '@jest/globals';
import { createStallClock, type Reading, type StallClock } from './stall-clock.ts';

const STALL_MS = 100;

let clock: StallClock;
let nowMs: number;

beforeEach(() => {
  clock = createStallClock(STALL_MS);
  nowMs = 1_000;
});

const at = (position: number, more: Partial<Reading> = {}): Reading => ({
  topic: 'a',
  partition: 0,
  position,
  lag: 5,
  isWaiting: false,
  ...more,
});

/** One look after so much time; answers which partitions have stalled. */
function look(countedMs: number, ...readings: Reading[]): number[] {
  nowMs += countedMs;
  return clock.look(readings, { countedMs, nowMs }).map(({ partition }) => partition);
}

describe('the clock of stalls', () => {
  test('tells a partition that stands still with records to read, after its whole time', () => {
    expect(look(40, at(7))).toEqual([]);
    expect(look(60, at(7))).toEqual([]);
    expect(look(39, at(7))).toEqual([]);
    expect(look(1, at(7))).toEqual([0]);
  });

  test('gives its whole time again to one that moved, in whatever direction', () => {
    for (const position of [7, 8, 3]) look(90, at(position));
    expect(look(90, at(3))).toEqual([]);
    expect(look(90, at(3))).toEqual([0]);
  });

  test.each([
    ['nothing to read', { lag: 0 }],
    ['its head not due, or no room', { isWaiting: true }],
  ])('forgives one that has %s', (_why, excuse) => {
    look(0, at(7));
    look(90, at(7));
    expect(look(90, at(7, excuse))).toEqual([]);
    expect(look(90, at(7))).toEqual([]);
  });

  test('judges each partition for itself', () => {
    look(0, at(7), at(1, { partition: 1 }));
    expect(look(100, at(7), at(2, { partition: 1 }))).toEqual([0]);
  });

  test('forgets a partition that went away and came back', () => {
    look(0, at(7));
    look(90, at(7));
    look(90);
    expect(look(90, at(7))).toEqual([]);
    expect(look(90, at(7))).toEqual([]);
  });

  test('gives every partition its whole time again when the consumer began anew', () => {
    look(0, at(7));
    look(100, at(7));
    clock.restart();
    expect(look(99, at(7))).toEqual([]);
    expect(look(1, at(7))).toEqual([0]);
  });

  test('knows when the partition of a topic that waits longest last moved', () => {
    look(0, at(7), at(1, { partition: 1 }));
    look(30, at(7), at(2, { partition: 1 }));
    look(30, at(7), at(3, { partition: 1 }));
    expect(clock.movedAtMs('a', nowMs)).toBe(1_000);
    expect(clock.movedAtMs('b', nowMs)).toBe(nowMs);
  });
});

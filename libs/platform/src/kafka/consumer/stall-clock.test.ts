import { beforeEach, describe, expect, test } from '@jest/globals';
import { createStallClock, type PartitionReading, type StallClock } from './stall-clock.ts';

const STALL_MS = 100;

let clock: StallClock;
let nowMs: number;

beforeEach(() => {
  clock = createStallClock(STALL_MS);
  nowMs = 1_000;
});

const at = (position: number, more: Partial<PartitionReading> = {}): PartitionReading => ({
  topic: 'a',
  partition: 0,
  position,
  lag: 5,
  isWaiting: false,
  ...more,
});

/** One check after so much time; returns which partitions have stalled. */
function check(countedMs: number, ...readings: PartitionReading[]): number[] {
  nowMs += countedMs;
  return clock.add(readings, { countedMs, nowMs }).map(({ partition }) => partition);
}

describe('the stall clock', () => {
  test('reports a partition that does not move although it has records to read, after the whole time', () => {
    expect(check(40, at(7))).toEqual([]);
    expect(check(60, at(7))).toEqual([]);
    expect(check(39, at(7))).toEqual([]);
    expect(check(1, at(7))).toEqual([0]);
  });

  test('gives the whole time again to a partition that moved in either direction', () => {
    for (const position of [7, 8, 3]) check(90, at(position));
    expect(check(90, at(3))).toEqual([]);
    expect(check(90, at(3))).toEqual([0]);
  });

  test.each([
    ['nothing to read', { lag: 0 }],
    ['its next record not due, or no capacity', { isWaiting: true }],
  ])('does not count the time of a partition that has %s', (_why, excuse) => {
    check(0, at(7));
    check(90, at(7));
    expect(check(90, at(7, excuse))).toEqual([]);
    expect(check(90, at(7))).toEqual([]);
  });

  test('judges each partition on its own', () => {
    check(0, at(7), at(1, { partition: 1 }));
    expect(check(100, at(7), at(2, { partition: 1 }))).toEqual([0]);
  });

  test('forgets a partition that went away and came back', () => {
    check(0, at(7));
    check(90, at(7));
    check(90);
    expect(check(90, at(7))).toEqual([]);
    expect(check(90, at(7))).toEqual([]);
  });

  test('gives every partition its whole time again when the consumer was replaced', () => {
    check(0, at(7));
    check(100, at(7));
    clock.restart();
    expect(check(99, at(7))).toEqual([]);
    expect(check(1, at(7))).toEqual([0]);
  });

  test('returns when the partition of a topic that has waited longest last moved', () => {
    check(0, at(7), at(1, { partition: 1 }));
    check(30, at(7), at(2, { partition: 1 }));
    check(30, at(7), at(3, { partition: 1 }));
    expect(clock.movedAtMs('a', nowMs)).toBe(1_000);
    expect(clock.movedAtMs('b', nowMs)).toBe(nowMs);
  });
});

import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Consumer } from 'kafkajs';
import { createPausedPartitions, type PausedPartitions } from './paused-partitions.ts';

let paused: Set<number>;
let pauses: PausedPartitions;

type Selection = Parameters<Consumer['pause']>[0];

const partitionsOf = (selection: Selection): number[] =>
  selection.flatMap(({ partitions = [] }) => partitions);

beforeEach(() => {
  paused = new Set();
  pauses = createPausedPartitions({
    pause: (selection) => {
      for (const partition of partitionsOf(selection)) paused.add(partition);
    },
    resume: (selection) => {
      for (const partition of partitionsOf(selection)) paused.delete(partition);
    },
    paused: () => [{ topic: 'a', partitions: [...paused] }],
  });
});

const resumeNext = (except?: number): number[] => {
  pauses.resumeNext(({ partition }) => partition !== except);
  return [...paused];
};

describe('the paused partitions', () => {
  test('are resumed one at a time, the one paused longest ago first', () => {
    for (const partition of [0, 1, 2]) pauses.pauseForCapacity('a', partition);
    expect(resumeNext()).toEqual([1, 2]);
    pauses.pauseForCapacity('a', 0);
    expect(resumeNext()).toEqual([2, 0]);
    expect(resumeNext()).toEqual([0]);
    expect(resumeNext()).toEqual([]);
  });

  test('are passed over where they may not be resumed', () => {
    for (const partition of [0, 1]) pauses.pauseForCapacity('a', partition);
    expect(resumeNext(0)).toEqual([0]);
    expect(pauses.isPausedForCapacity({ topic: 'a', partition: 0 })).toBe(true);
  });

  test('are not resumed while their next record is not due', () => {
    pauses.pauseForCapacity('a', 0);
    pauses.delay('a', 0, 60_000);
    expect(resumeNext()).toEqual([0]);
    expect(pauses.isDelayed({ topic: 'a', partition: 0 })).toBe(true);
    pauses.close();
  });

  test('are all resumed after a rebalance', () => {
    pauses.pauseForCapacity('a', 0);
    pauses.delay('a', 1, 60_000);
    pauses.resumeAll();
    expect(paused.size).toBe(0);
    expect(pauses.isDelayed({ topic: 'a', partition: 1 })).toBe(false);
  });
});

import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Consumer } from 'kafkajs';
import { createPauses, type Pauses } from './pauses.ts';

let paused: Set<number>;
let pauses: Pauses;

type Selection = Parameters<Consumer['pause']>[0];

const partitionsOf = (selection: Selection): number[] =>
  selection.flatMap(({ partitions = [] }) => partitions);

beforeEach(() => {
  paused = new Set();
  pauses = createPauses({
    pause: (selection) => {
      for (const partition of partitionsOf(selection)) paused.add(partition);
    },
    resume: (selection) => {
      for (const partition of partitionsOf(selection)) paused.delete(partition);
    },
    paused: () => [{ topic: 'a', partitions: [...paused] }],
  });
});

const letGo = (unfree?: number): number[] => {
  pauses.letGo(({ partition }) => partition !== unfree);
  return [...paused];
};

describe('the pauses of partitions', () => {
  test('end one at a time, that of who waited longest first', () => {
    for (const partition of [0, 1, 2]) pauses.holdBack('a', partition);
    expect(letGo()).toEqual([1, 2]);
    pauses.holdBack('a', 0);
    expect(letGo()).toEqual([2, 0]);
    expect(letGo()).toEqual([0]);
    expect(letGo()).toEqual([]);
  });

  test('pass over a partition that is not free', () => {
    for (const partition of [0, 1]) pauses.holdBack('a', partition);
    expect(letGo(0)).toEqual([0]);
    expect(pauses.isHeldBack({ topic: 'a', partition: 0 })).toBe(true);
  });

  test('do not end while the head of the partition is not due', () => {
    pauses.holdBack('a', 0);
    pauses.pauseFor('a', 0, 60_000);
    expect(letGo()).toEqual([0]);
    expect(pauses.isPostponed({ topic: 'a', partition: 0 })).toBe(true);
    pauses.close();
  });

  test('are all forgotten after a rebalance', () => {
    pauses.holdBack('a', 0);
    pauses.pauseFor('a', 1, 60_000);
    pauses.forgetAll();
    expect(paused.size).toBe(0);
    expect(pauses.isPostponed({ topic: 'a', partition: 1 })).toBe(false);
  });
});

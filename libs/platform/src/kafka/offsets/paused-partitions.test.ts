import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Consumer } from 'kafkajs';
import { eventually } from '../../../../../test/support/time/eventually.ts';
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
    seek: () => undefined,
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

  test('are resumed past one whose next record is not due', () => {
    for (const partition of [0, 1]) pauses.pauseForCapacity('a', partition);
    pauses.delay('a', 0, 60_000);
    expect(resumeNext()).toEqual([0]);
    pauses.close();
  });

  test('are all resumed after a rebalance', () => {
    pauses.pauseForCapacity('a', 0);
    pauses.delay('a', 1, 60_000);
    pauses.resumeAll();
    expect(paused.size).toBe(0);
    expect(pauses.isDelayed({ topic: 'a', partition: 1 })).toBe(false);
  });

  test('are asked again after each pause, and by nobody once the group has changed', async () => {
    let asked = 0;
    const mayReadOn = (): Promise<boolean> => {
      asked += 1;
      return asked === 1
        ? Promise.reject(new Error('MongoDB is away'))
        : Promise.resolve(asked > 2);
    };
    pauses.readAgain({ topic: 'a', partition: 0, offset: 7 }, { pauseMs: 1, mayReadOn });
    expect([...paused]).toEqual([0]);
    await eventually('it is resumed', () => paused.size === 0);
    expect(asked).toBe(3);
    const answer = Promise.withResolvers<boolean>();
    const late = (): Promise<boolean> => {
      asked += 1;
      return answer.promise;
    };
    pauses.readAgain({ topic: 'a', partition: 1, offset: 7 }, { pauseMs: 1, mayReadOn: late });
    await eventually('it is asked', () => asked === 4);
    pauses.resumeAll();
    pauses.delay('a', 1, 60_000);
    answer.resolve(true);
    await answer.promise;
    await new Promise(setImmediate);
    expect([...paused]).toEqual([1]);
    pauses.close();
  });
});

import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createBatcher, type Batcher, type Linger } from './batcher.ts';

interface Run {
  items: number[];
  finish: () => void;
  fail: () => void;
}

let runs: Run[] = [];

beforeEach(() => {
  jest.useFakeTimers();
  runs = [];
});
afterEach(() => {
  jest.useRealTimers();
});

function batcherWith(changes: {
  maxItems?: number;
  lingerMs?: number | Linger;
  maxInFlight?: number;
}) {
  const run = (items: number[]) =>
    new Promise<string[]>((resolve, reject) => {
      const finish = () => {
        resolve(items.map((item) => `done ${item}`));
      };
      const fail = () => {
        reject(new Error(`batch ${items.join()} failed`));
      };
      runs.push({ items, finish, fail });
    });
  return createBatcher({ maxItems: 10, lingerMs: 5, maxInFlight: 1, ...changes, run });
}

const batches = () => runs.map(({ items }) => items);
const addAll = (batcher: Batcher<number, string>, ...items: number[]) =>
  Promise.all(items.map(batcher.add));
const settle = () => jest.advanceTimersByTimeAsync(0);

describe('a batcher', () => {
  test('groups items that arrive within the linger, and resolves each with its own result', async () => {
    const batcher = batcherWith({});
    const first = addAll(batcher, 1, 2);
    jest.advanceTimersByTime(4);
    const second = addAll(batcher, 3);
    expect(runs).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(batches()).toEqual([[1, 2, 3]]);
    runs[0]?.finish();
    expect(await Promise.all([first, second])).toEqual([['done 1', 'done 2'], ['done 3']]);
  });

  test('does not linger when a batch is full', () => {
    void addAll(batcherWith({ maxItems: 2 }), 1, 2);
    expect(batches()).toEqual([[1, 2]]);
  });

  test('does not linger when the linger is zero', () => {
    void addAll(batcherWith({ lingerMs: 0, maxInFlight: 2 }), 1, 2, 3);
    expect(batches()).toEqual([[1], [2]]);
  });

  test('starts the next batch at once when a running batch ends', async () => {
    const batcher = batcherWith({ maxItems: 2 });
    void addAll(batcher, 1, 2, 3, 4, 5);
    expect(batches()).toEqual([[1, 2]]);
    runs[0]?.finish();
    await settle();
    expect(batches()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    runs[1]?.finish();
    await settle();
    expect(batches()).toEqual([[1, 2], [3, 4], [5]]);
  });

  test('lingers only while another batch may run', () => {
    const batcher = batcherWith({ maxItems: 2 });
    void addAll(batcher, 1, 2, 3);
    jest.advanceTimersByTime(1_000);
    expect([batches(), jest.getTimerCount()]).toEqual([[[1, 2]], 0]);
  });

  test('lingers to the end when another batch ends meanwhile', async () => {
    const batcher = batcherWith({ maxItems: 2, maxInFlight: 2 });
    void addAll(batcher, 1, 2, 3);
    jest.advanceTimersByTime(3);
    runs[0]?.finish();
    await settle();
    expect(batches()).toEqual([[1, 2]]);
    await jest.advanceTimersByTimeAsync(2);
    expect(batches()).toEqual([[1, 2], [3]]);
  });

  test('never runs more batches at once than allowed', async () => {
    const batcher = batcherWith({ maxItems: 1, maxInFlight: 3 });
    void addAll(batcher, 1, 2, 3, 4, 5);
    expect(runs).toHaveLength(3);
    runs[1]?.finish();
    await settle();
    expect(batches()).toEqual([[1], [2], [3], [4]]);
  });

  test('rejects only the items of the batch that failed, and continues', async () => {
    const batcher = batcherWith({ maxItems: 2 });
    const added = Promise.allSettled([1, 2, 3].map(batcher.add));
    runs[0]?.fail();
    await settle();
    runs[1]?.finish();
    expect((await added).map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
      'fulfilled',
    ]);
  });

  test('survives a run that throws before it returns a promise', async () => {
    const batcher = createBatcher<number, string>({
      maxItems: 1,
      lingerMs: 0,
      maxInFlight: 1,
      run: ([item]) => {
        if (item === 1) throw new Error('at once');
        return Promise.resolve(['fine']);
      },
    });
    await expect(batcher.add(1)).rejects.toThrow('at once');
    expect(await batcher.add(2)).toBe('fine');
  });

  test('is idle when nothing waits or runs', async () => {
    const batcher = batcherWith({ maxItems: 1 });
    await batcher.idle();
    void addAll(batcher, 1, 2);
    let isIdle = false;
    const idle = batcher.idle().then(() => (isIdle = true));
    runs[0]?.finish();
    await settle();
    expect([runs.length, isIdle]).toEqual([2, false]);
    runs[1]?.finish();
    expect(await idle).toBe(true);
  });

  test('counts items that wait and items that run', async () => {
    const batcher = batcherWith({ maxItems: 2 });
    void addAll(batcher, 1, 2, 3);
    expect(batcher.size()).toBe(3);
    runs[0]?.finish();
    await settle();
    expect(batcher.size()).toBe(1);
    runs[1]?.finish();
    await settle();
    expect(batcher.size()).toBe(0);
  });
});

describe('a batcher with a linger of its own', () => {
  test('calls it at each arrival, after the wait and when a running batch ends', async () => {
    const asked: object[] = [];
    const rests = [3, 2, 0, 4, 0];
    const lingerMs: Linger = {
      arrived: (before) => asked.push(before),
      restMs: (batch) => {
        asked.push(batch);
        return rests.shift() ?? 0;
      },
    };
    const batcher = batcherWith({ lingerMs });
    void addAll(batcher, 1);
    await jest.advanceTimersByTimeAsync(3);
    expect(runs).toEqual([]);
    await jest.advanceTimersByTimeAsync(2);
    void addAll(batcher, 2);
    expect(batches()).toEqual([[1]]);
    runs[0]?.finish();
    await jest.advanceTimersByTimeAsync(3);
    expect(batches()).toEqual([[1]]);
    await jest.advanceTimersByTimeAsync(1);
    expect(batches()).toEqual([[1], [2]]);
    expect(asked).toEqual([
      { waiting: 0, running: 0 },
      { waiting: 1, isArrival: true },
      { waiting: 1, isArrival: false },
      { waiting: 1, isArrival: false },
      { waiting: 0, running: 1 },
      { waiting: 1, isArrival: false },
      { waiting: 1, isArrival: false },
    ]);
  });
});

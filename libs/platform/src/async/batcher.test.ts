import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Batcher,
  createAdaptiveLinger,
  createBatcher,
  type Gathering,
  type Linger,
  nextInterval,
  restOfLinger,
} from './batcher.ts';

describe('batcher', () => {
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
        ended: () => undefined,
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
});

const BOUNDS = { maxLingerMs: 6, minExpected: 2, enough: 16, patience: 3 };

const ms = (max: number) => fc.double({ min: 0, max, noNaN: true });
const gatherings = fc.record<Gathering>({
  intervalMs: ms(20),
  waitedMs: ms(20),
  quietMs: ms(20),
  waiting: fc.integer({ min: 1, max: 40 }),
});
const gathering = (changes: Partial<Gathering>): Gathering => ({
  intervalMs: 1,
  waitedMs: 0,
  quietMs: 0,
  waiting: 1,
  ...changes,
});

describe('the remaining linger', () => {
  test('is zero when too few items are expected within it', () => {
    expect(restOfLinger(gathering({ intervalMs: 3.1 }), BOUNDS)).toBe(0);
    expect(restOfLinger(gathering({ intervalMs: 3 }), BOUNDS)).toBe(6);
  });

  test('is zero when enough items wait', () => {
    expect(restOfLinger(gathering({ waiting: 16 }), BOUNDS)).toBe(0);
  });

  test('ends when no item has arrived for three usual intervals', () => {
    expect(restOfLinger(gathering({ waitedMs: 2, quietMs: 1 }), BOUNDS)).toBe(2);
    expect(restOfLinger(gathering({ waitedMs: 2, quietMs: 3.5 }), BOUNDS)).toBe(0);
  });

  test('is never negative, and never more than what is left of the longest linger', () => {
    fc.assert(
      fc.property(gatherings, (given) => {
        const restMs = restOfLinger(given, BOUNDS);
        expect(restMs).toBeGreaterThanOrEqual(0);
        expect(restMs).toBeLessThanOrEqual(Math.max(0, BOUNDS.maxLingerMs - given.waitedMs));
      }),
    );
  });

  test('never grows while time passes and no item arrives', () => {
    fc.assert(
      fc.property(gatherings, ms(5), (given, passedMs) => {
        const later = {
          ...given,
          waitedMs: given.waitedMs + passedMs,
          quietMs: given.quietMs + passedMs,
        };
        expect(restOfLinger(later, BOUNDS)).toBeLessThanOrEqual(restOfLinger(given, BOUNDS));
      }),
    );
  });
});

describe('the usual interval', () => {
  const arrivals = fc.array(fc.record({ gapMs: ms(10_000), isReply: fc.boolean() }));

  test('stays between zero and two lingers, however long a pause is', () => {
    fc.assert(
      fc.property(arrivals, (all) => {
        const intervalMs = all.reduce((each, next) => nextInterval(each, next, 6), 12);
        expect(intervalMs).toBeGreaterThanOrEqual(0);
        expect(intervalMs).toBeLessThanOrEqual(12);
      }),
    );
  });

  test('approaches the intervals that are observed', () => {
    const steady = Array<number>(60).fill(1.5);
    const seen = steady.reduce(
      (each, gapMs) => nextInterval(each, { gapMs, isReply: false }, 6),
      12,
    );
    expect(seen).toBeCloseTo(1.5, 1);
  });

  test('counts a clock that was set back as no time', () => {
    expect(nextInterval(8, { gapMs: -1_000, isReply: false }, 6)).toBe(7);
  });
});

describe('an adaptive linger', () => {
  let nowMs = 0;

  /** How long the first item of the next batch waits after 50 arrivals. */
  function restAfter(gapMs: number, afterEndMs = gapMs, maxLingerMs = 6): number {
    nowMs = 1_000;
    const linger = createAdaptiveLinger({ ...BOUNDS, maxLingerMs }, () => nowMs);
    for (let count = 0; count < 50; count += 1) {
      nowMs += gapMs - afterEndMs;
      linger.ended();
      nowMs += afterEndMs;
      linger.arrived({ waiting: 0, running: 0 });
    }
    return linger.restMs({ waiting: 1, isArrival: true });
  }

  test('waits at 650 items a second although each comes alone, and not at 100', () => {
    nowMs = 0;
    const linger = createAdaptiveLinger(BOUNDS, () => nowMs);
    for (let count = 0; count < 50; count += 1) {
      nowMs += 1_000 / 650;
      linger.arrived({ waiting: count % 2, running: 0 });
      if (count % 2 === 1) linger.ended();
    }
    expect(linger.restMs({ waiting: 1, isArrival: true })).toBeGreaterThan(4);
    expect(restAfter(10)).toBe(0);
  });

  test('waits for items that come alone, but not soon after the one before has ended', () => {
    expect(restAfter(4, 3.5, 10)).toBe(10);
    expect(restAfter(4, 2.5, 10)).toBe(0);
  });

  test('never waits for one client that sends again as soon as it has a response', () => {
    expect(restAfter(0.5)).toBe(0);
  });

  test('counts from the first item of the batch, not from the last', () => {
    nowMs = 0;
    const linger = createAdaptiveLinger({ ...BOUNDS, patience: 1_000 }, () => nowMs);
    for (let count = 0; count < 50; count += 1) linger.arrived({ waiting: 1, running: 0 });
    linger.arrived({ waiting: 0, running: 1 });
    nowMs = 4;
    linger.arrived({ waiting: 1, running: 1 });
    expect(linger.restMs({ waiting: 2, isArrival: true })).toBe(2);
  });

  test('does not wait before the first item', () => {
    const linger = createAdaptiveLinger(BOUNDS, () => 0);
    linger.arrived({ waiting: 0, running: 0 });
    expect(linger.restMs({ waiting: 1, isArrival: true })).toBe(0);
  });
});

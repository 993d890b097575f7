import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  createLoop,
  createRestingTicker,
  type Loop,
  startTicker,
  stopSoon,
  type Ticker,
  walkInSlices,
} from './loop.ts';

describe('loop', () => {
  let rounds: { end: () => void; fail: (error: Error) => void; signal: AbortSignal }[];
  let logged: [object, string][];
  let loop: Loop;

  beforeEach(() => {
    jest.useFakeTimers();
    [rounds, logged] = [[], []];
    loop = createLoop({
      name: 'sweep',
      everyMs: 100,
      run: (signal) =>
        new Promise((resolve, reject) => {
          rounds.push({ end: resolve, fail: reject, signal });
        }),
      logger: { warn: (fields, text) => void logged.push([fields, text]) },
    });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  describe('a loop', () => {
    test('runs a round after each interval, from the start to the stop', async () => {
      loop.start();
      await jest.advanceTimersByTimeAsync(99);
      expect(rounds).toHaveLength(0);
      for (const count of [1, 2, 3]) {
        await jest.advanceTimersByTimeAsync(count === 1 ? 1 : 100);
        expect(rounds).toHaveLength(count);
        rounds.at(-1)?.end();
      }
      await loop.stop();
      await jest.advanceTimersByTimeAsync(1_000);
      expect(rounds).toHaveLength(3);
    });

    test('never runs two rounds at once', async () => {
      loop.start();
      await jest.advanceTimersByTimeAsync(1_000);
      const ticks = [loop.tick(), loop.tick()];
      expect(rounds).toHaveLength(1);
      rounds[0]?.end();
      await Promise.all(ticks);
      await jest.advanceTimersByTimeAsync(100);
      expect(rounds).toHaveLength(2);
      rounds[1]?.end();
      await loop.stop();
    });

    test('logs a round that fails and runs the next one', async () => {
      loop.start();
      await jest.advanceTimersByTimeAsync(100);
      const error = new Error('away');
      rounds[0]?.fail(error);
      await jest.advanceTimersByTimeAsync(100);
      expect(rounds).toHaveLength(2);
      expect(logged).toEqual([[{ err: error, loop: 'sweep' }, 'a tick failed, retrying']]);
      rounds[1]?.end();
      await loop.stop();
    });

    test('logs a round that throws before it returns a promise', async () => {
      const throwing = createLoop({
        name: 'sweep',
        everyMs: 100,
        run: () => {
          throw new Error('at once');
        },
        logger: { warn: (fields, text) => void logged.push([fields, text]) },
      });
      await throwing.tick();
      expect(logged).toHaveLength(1);
    });

    test('tells the running round that it stops', async () => {
      loop.start();
      await jest.advanceTimersByTimeAsync(100);
      expect(rounds[0]?.signal.aborted).toBe(false);
      const stopped = loop.stop();
      expect(rounds[0]?.signal.aborted).toBe(true);
      rounds[0]?.end();
      await stopped;
    });

    test('waits for the running round when it stops', async () => {
      loop.start();
      await jest.advanceTimersByTimeAsync(100);
      let isStopped = false;
      const stopped = loop.stop().then(() => (isStopped = true));
      await jest.advanceTimersByTimeAsync(1_000);
      expect(isStopped).toBe(false);
      rounds[0]?.end();
      await stopped;
      expect(rounds).toHaveLength(1);
    });

    test('can be stopped without waiting for a round that hangs', async () => {
      void loop.tick();
      let isStopped = false;
      const stopping = stopSoon(loop).then(() => (isStopped = true));
      await jest.advanceTimersByTimeAsync(1_999);
      expect([rounds[0]?.signal.aborted, isStopped]).toEqual([true, false]);
      await jest.advanceTimersByTimeAsync(1);
      await stopping;
      expect(isStopped).toBe(true);
    });
  });
});

describe('ticker', () => {
  let ticks: number;
  let ticker: Ticker;

  beforeEach(() => {
    jest.useFakeTimers();
    ticks = 0;
    ticker = startTicker(100, () => {
      ticks += 1;
    });
  });
  afterEach(() => {
    ticker.stop();
    jest.useRealTimers();
  });

  describe('a ticker', () => {
    test('ticks after each interval until it is stopped', () => {
      jest.advanceTimersByTime(99);
      expect(ticks).toBe(0);
      jest.advanceTimersByTime(1);
      expect(ticks).toBe(1);
      jest.advanceTimersByTime(200);
      expect(ticks).toBe(3);
      ticker.stop();
      jest.advanceTimersByTime(1_000);
      expect(ticks).toBe(3);
    });

    test('shares its wakes with the tickers that were started at other times', () => {
      const at: number[] = [];
      const begunAtMs = performance.now();
      jest.advanceTimersByTime(130);
      const other = startTicker(50, () => at.push(performance.now() - begunAtMs));
      jest.advanceTimersByTime(100);
      other.stop();
      expect(at).toEqual([150, 200]);
    });

    test('lets a tick throw to the process', () => {
      const fault = new Error('impossible');
      const throwing = startTicker(50, () => {
        throw fault;
      });
      expect(() => {
        jest.advanceTimersByTime(50);
      }).toThrow(fault);
      throwing.stop();
    });
  });
});

describe('a resting ticker', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('ticks from each time it is woken until a tick returns false', () => {
    const goesOn = [true, false, false];
    const left = [...goesOn];
    const ticker = createRestingTicker(20, () => left.shift() ?? false);
    jest.advanceTimersByTime(100);
    expect(left).toEqual(goesOn);
    expect([ticker.wake(), ticker.wake()]).toEqual([true, false]);
    jest.advanceTimersByTime(100);
    expect(left).toEqual([false]);
    expect(ticker.wake()).toBe(true);
    ticker.stop();
    jest.advanceTimersByTime(100);
    expect(left).toEqual([false]);
  });
});

describe('a walk in slices', () => {
  const numbers = (count: number): Map<number, number> =>
    new Map(Array.from({ length: count }, (_, n) => [n, n]));

  test('visits all of a small map with each call', () => {
    const seen: number[] = [];
    const walk = walkInSlices(numbers(3));
    walk((value) => seen.push(value));
    walk((value) => seen.push(value));
    expect(seen).toEqual([0, 1, 2, 0, 1, 2]);
  });

  test('visits each entry of a large one once in 50 calls, a fiftieth with each', () => {
    const visits = new Map<number, number>();
    const walk = walkInSlices(numbers(10_000));
    for (let call = 1; call <= 50; call += 1) {
      walk((value) => visits.set(value, (visits.get(value) ?? 0) + 1));
      expect(visits.size).toBe(call * 200);
    }
    expect(new Set(visits.values())).toEqual(new Set([1]));
  });

  test('goes on while entries are removed and added', () => {
    const map = numbers(200);
    const seen = new Set<number>();
    const walk = walkInSlices(map);
    for (let call = 0; call < 6; call += 1) {
      walk((value, key) => {
        seen.add(value);
        map.delete(key);
      });
      if (call === 0) map.set(1_000, 1_000);
    }
    expect([seen.size, seen.has(1_000), map.size]).toEqual([201, true, 0]);
  });
});

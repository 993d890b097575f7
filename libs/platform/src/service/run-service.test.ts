import { afterEach, beforeEach, describe, expect, it, jest, test } from '@jest/globals';
import { createLogger } from './logger.ts';
import { createLifecycle, isWorthCollecting, type Lifecycle } from './run-service.ts';

describe('lifecycle', () => {
  let steps: string[] = [];
  let exits: number[] = [];
  let lifecycle: Lifecycle;

  beforeEach(() => {
    jest.useFakeTimers();
    [steps, exits] = [[], []];
    const exit = (code: number) => exits.push(code);
    lifecycle = createLifecycle(createLogger('test', 'silent'), { stopTimeoutMs: 1_000, exit });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  function onStop(name: string, stop: () => Promise<void> | void = () => undefined): void {
    lifecycle.onStop(name, async () => {
      steps.push(`${name} begins`);
      await stop();
      steps.push(`${name} ends`);
    });
  }

  describe('a stop', () => {
    test('runs the newest step first, one after the other', async () => {
      onStop('database', () => Promise.resolve());
      onStop('consumer', () => Promise.resolve());
      await lifecycle.shutDown('SIGTERM', 0);
      expect(steps).toEqual([
        'consumer begins',
        'consumer ends',
        'database begins',
        'database ends',
      ]);
    });

    test.each([0, 1, 70])('ends the process once, with the code %d', async (code) => {
      await lifecycle.shutDown('test', code);
      jest.advanceTimersByTime(10_000);
      expect(exits).toEqual([code]);
    });

    test('continues after a step that fails', async () => {
      onStop('database');
      onStop('rejecting', () => Promise.reject(new Error('no')));
      lifecycle.onStop('throwing', () => {
        throw new Error('no');
      });
      await lifecycle.shutDown('SIGTERM', 0);
      expect(steps).toEqual(['rejecting begins', 'database begins', 'database ends']);
      expect(exits).toEqual([0]);
    });

    test('runs once when it is requested twice, and uses the first exit code', async () => {
      onStop('database');
      await Promise.all([lifecycle.shutDown('SIGTERM', 0), lifecycle.shutDown('crash', 1)]);
      expect(steps).toEqual(['database begins', 'database ends']);
      expect(exits).toEqual([0]);
    });

    test('leaves a step behind that hangs, in time for the others, and keeps its exit code', async () => {
      onStop('database');
      onStop('producer');
      onStop('stuck consumer', () => new Promise(() => undefined));
      void lifecycle.shutDown('SIGTERM', 0);
      // Of 1,000 ms two steps keep 500 each.
      await jest.advanceTimersByTimeAsync(0);
      expect(steps).toEqual([
        ...['stuck consumer begins', 'producer begins', 'producer ends'],
        ...['database begins', 'database ends'],
      ]);
      expect(exits).toEqual([0]);
    });

    test('ends in its time when every step hangs', async () => {
      for (const name of ['a', 'b']) onStop(name, () => new Promise(() => undefined));
      void lifecycle.shutDown('SIGTERM', 0);
      await jest.advanceTimersByTimeAsync(499);
      expect(steps).toEqual(['b begins']);
      await jest.advanceTimersByTimeAsync(500);
      expect([steps, exits]).toEqual([['b begins', 'a begins'], []]);
      await jest.advanceTimersByTimeAsync(1);
      expect(exits).toEqual([0]);
    });

    test('runs the steps that a start still adds, the newest first', async () => {
      onStop('database', () => Promise.resolve());
      onStop('consumer', () => {
        onStop('late');
      });
      await lifecycle.shutDown('SIGTERM', 0);
      expect(steps.filter((step) => step.endsWith('ends'))).toEqual([
        ...['consumer ends', 'late ends', 'database ends'],
      ]);
    });

    test('makes the service not ready before the first step', async () => {
      onStop('consumer', () => {
        steps.push(`ready: ${String(lifecycle.isReady())}`);
      });
      lifecycle.markReady();
      await lifecycle.shutDown('SIGTERM', 0);
      expect(steps[1]).toBe('ready: false');
    });
  });

  test('the signal of the stop is aborted before its first step', async () => {
    onStop('consumer', () => {
      steps.push(`aborted: ${String(lifecycle.stopping.aborted)}`);
    });
    expect(lifecycle.stopping.aborted).toBe(false);
    await lifecycle.shutDown('SIGTERM', 0);
    expect(steps[1]).toBe('aborted: true');
  });

  describe('readiness', () => {
    test('begins when the start has completed', () => {
      expect(lifecycle.isReady()).toBe(false);
      lifecycle.markReady();
      expect(lifecycle.isReady()).toBe(true);
    });

    test('never begins after a stop has begun', async () => {
      await lifecycle.shutDown('SIGTERM', 0);
      lifecycle.markReady();
      expect(lifecycle.isReady()).toBe(false);
    });
  });
});

const MIB = 1_048_576;

describe('garbage is collected while the process is idle', () => {
  const rest = {
    busyShare: 0.02,
    residentBytes: 200 * MIB,
    keptBytes: 200 * MIB,
    sinceGrownMs: null,
  };

  it('when it was never collected', () => {
    expect(isWorthCollecting({ ...rest, keptBytes: null })).toBe(true);
  });

  it('when the process has grown since the last collection, and not otherwise', () => {
    expect(isWorthCollecting({ ...rest, residentBytes: 233 * MIB })).toBe(true);
    expect(isWorthCollecting({ ...rest, residentBytes: 232 * MIB })).toBe(false);
  });

  it('a second time when the entries of the caches have expired', () => {
    expect(isWorthCollecting({ ...rest, sinceGrownMs: 80_000 })).toBe(false);
    expect(isWorthCollecting({ ...rest, sinceGrownMs: 90_000 })).toBe(true);
  });

  it('never while the process is busy, because work would wait for it', () => {
    const busy = { ...rest, busyShare: 0.1, residentBytes: 600 * MIB, sinceGrownMs: 90_000 };
    expect(isWorthCollecting(busy)).toBe(false);
  });
});

import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createLifecycle, type Lifecycle } from './lifecycle.ts';
import { createLogger } from './logger.ts';

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
  test('undoes the newest step first, one after the other', async () => {
    onStop('database', () => Promise.resolve());
    onStop('consumer', () => Promise.resolve());
    await lifecycle.shutDown('SIGTERM', 0);
    expect(steps).toEqual(['consumer begins', 'consumer ends', 'database begins', 'database ends']);
  });

  test.each([0, 1, 70])('ends the process with the code %d, once', async (code) => {
    await lifecycle.shutDown('test', code);
    jest.advanceTimersByTime(10_000);
    expect(exits).toEqual([code]);
  });

  test('goes on behind a step that fails', async () => {
    onStop('database');
    onStop('rejecting', () => Promise.reject(new Error('no')));
    lifecycle.onStop('throwing', () => {
      throw new Error('no');
    });
    await lifecycle.shutDown('SIGTERM', 0);
    expect(steps).toEqual(['rejecting begins', 'database begins', 'database ends']);
    expect(exits).toEqual([0]);
  });

  test('that is asked for twice is one, and the first code counts', async () => {
    onStop('database');
    await Promise.all([lifecycle.shutDown('SIGTERM', 0), lifecycle.shutDown('crash', 1)]);
    expect(steps).toEqual(['database begins', 'database ends']);
    expect(exits).toEqual([0]);
  });

  test('that hangs is ended after its time, and never with success', async () => {
    onStop('stuck', () => new Promise(() => undefined));
    void lifecycle.shutDown('SIGTERM', 0);
    await jest.advanceTimersByTimeAsync(999);
    expect(exits).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(exits).toEqual([1]);
  });

  test('is told to those who wait before the first step', async () => {
    onStop('consumer', () => {
      steps.push(`ready: ${lifecycle.isReady()}`);
    });
    lifecycle.markReady();
    await lifecycle.shutDown('SIGTERM', 0);
    expect(steps[1]).toBe('ready: false');
  });
});

describe('readiness', () => {
  test('begins when the start is over', () => {
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

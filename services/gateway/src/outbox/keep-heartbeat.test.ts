import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { createHeartbeat, type Heartbeat } from './keep-heartbeat.ts';

/** The calls of the publisher store, in order. */
let calls: unknown[][] = [];
let state = { watermark: 'msg_5', unpublished: 0, behindMs: null as number | null };
let cappedAt: string | null = null;
let unconfirmedTicks = 0;
let hasUnconfirmed: boolean;
let store: () => Promise<void>;
let heartbeat: Heartbeat;

beforeEach(() => {
  jest.useFakeTimers();
  [calls, cappedAt, hasUnconfirmed, unconfirmedTicks] = [[], null, false, 0];
  state = { watermark: 'msg_5', unpublished: 0, behindMs: null };
  store = () => Promise.resolve();
  const unused = () => Promise.reject(new Error('not used here'));
  const recordCall = (...call: unknown[]) => {
    calls.push(call);
    return store();
  };
  heartbeat = createHeartbeat({
    publisherId: 'gw_1',
    publishers: {
      heartbeat: (...args) => recordCall('heartbeat', ...args),
      forget: (...args) => recordCall('forget', ...args),
      findToSweep: unused,
      markSwept: unused,
    },
    publication: { state: () => state },
    unconfirmed: {
      add: () => undefined,
      capWatermark: (watermark) => cappedAt ?? watermark,
      hasAny: () => hasUnconfirmed,
      tick: () => {
        unconfirmedTicks += 1;
        return Promise.resolve();
      },
    },
    logger: createLogger('test', 'silent'),
  });
});

afterEach(() => {
  jest.useRealTimers();
});

describe('the heartbeat', () => {
  test('is stored before the start ends: only then may messages name the publisher', async () => {
    await heartbeat.start();
    expect(calls).toEqual([['heartbeat', 'gw_1', 'msg_5', null]]);
  });

  test('fails the start when it cannot be stored', async () => {
    store = () => Promise.reject(new Error('MongoDB is away'));
    await expect(heartbeat.start()).rejects.toThrow('MongoDB is away');
    expect(jest.getTimerCount()).toBe(0);
  });

  test('is written once a second with the current state', async () => {
    await heartbeat.start();
    state = { watermark: 'msg_7', unpublished: 3, behindMs: 400 };
    await jest.advanceTimersByTimeAsync(1_000);
    cappedAt = 'msg_6';
    await jest.advanceTimersByTimeAsync(1_000);
    expect(calls.slice(1)).toEqual([
      ['heartbeat', 'gw_1', 'msg_7', 400],
      ['heartbeat', 'gw_1', 'msg_6', 400],
    ]);
    expect(unconfirmedTicks).toBe(2);
  });

  test('is written again after a failure', async () => {
    store = () => Promise.reject(new Error('MongoDB is away'));
    await heartbeat.tick();
    store = () => Promise.resolve();
    await heartbeat.tick();
    expect([calls.length, unconfirmedTicks]).toEqual([2, 1]);
  });

  test('is not started while the previous one is running', async () => {
    let answer: () => void = () => undefined;
    store = () => new Promise((resolve) => (answer = resolve));
    const ticks = [heartbeat.tick(), heartbeat.tick()];
    expect(calls).toHaveLength(1);
    answer();
    await Promise.all(ticks);
    store = () => Promise.resolve();
    await heartbeat.tick();
    expect(calls).toHaveLength(2);
  });

  test('deletes the publisher at the stop when everything was published', async () => {
    await heartbeat.start();
    await heartbeat.stop();
    expect(calls.at(-1)).toEqual(['forget', 'gw_1', 0]);
    expect(jest.getTimerCount()).toBe(0);
  });

  test.each([
    ['messages are left', { unpublished: 2, capped: null, isOpen: false }],
    ['an insert is unconfirmed', { unpublished: 0, capped: 'msg_4', isOpen: true }],
    [
      'an insert beyond the watermark is unconfirmed',
      { unpublished: 0, capped: null, isOpen: true },
    ],
  ])(
    'is written a last time at the stop, for the sweeper, when %s',
    async (_what, { unpublished, capped, isOpen }) => {
      state = { ...state, unpublished, behindMs: 5 };
      [cappedAt, hasUnconfirmed] = [capped, isOpen];
      await heartbeat.stop();
      expect(calls).toEqual([['heartbeat', 'gw_1', capped ?? 'msg_5', 5]]);
    },
  );
});

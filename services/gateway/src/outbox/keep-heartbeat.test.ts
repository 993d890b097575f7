import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { createHeartbeat, type Heartbeat } from './keep-heartbeat.ts';

/** What the store was told, in order. */
let calls: unknown[][] = [];
let state = { watermark: 'msg_5', unpublished: 0, behindMs: null as number | null };
let heldAt: string | null = null;
let doubtTicks = 0;
let isDoubting: boolean;
let store: () => Promise<void>;
let heartbeat: Heartbeat;

beforeEach(() => {
  jest.useFakeTimers();
  [calls, heldAt, isDoubting, doubtTicks] = [[], null, false, 0];
  state = { watermark: 'msg_5', unpublished: 0, behindMs: null };
  store = () => Promise.resolve();
  const unused = () => Promise.reject(new Error('not used here'));
  const told = (...call: unknown[]) => {
    calls.push(call);
    return store();
  };
  heartbeat = createHeartbeat({
    publisherId: 'gw_1',
    publishers: {
      heartbeat: (...args) => told('heartbeat', ...args),
      forget: (...args) => told('forget', ...args),
      findToSweep: unused,
      markSwept: unused,
    },
    publication: { state: () => state },
    doubts: {
      add: () => undefined,
      hold: (watermark) => heldAt ?? watermark,
      isAnyOpen: () => isDoubting,
      tick: () => {
        doubtTicks += 1;
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
  test('is there before the start is over: only then may messages name the publisher', async () => {
    await heartbeat.start();
    expect(calls).toEqual([['heartbeat', 'gw_1', 'msg_5', null]]);
  });

  test('lets the start fail when it cannot be stored', async () => {
    store = () => Promise.reject(new Error('MongoDB is away'));
    await expect(heartbeat.start()).rejects.toThrow('MongoDB is away');
    expect(jest.getTimerCount()).toBe(0);
  });

  test('beats once a second with what is true then', async () => {
    await heartbeat.start();
    state = { watermark: 'msg_7', unpublished: 3, behindMs: 400 };
    await jest.advanceTimersByTimeAsync(1_000);
    heldAt = 'msg_6';
    await jest.advanceTimersByTimeAsync(1_000);
    expect(calls.slice(1)).toEqual([
      ['heartbeat', 'gw_1', 'msg_7', 400],
      ['heartbeat', 'gw_1', 'msg_6', 400],
    ]);
    expect(doubtTicks).toBe(2);
  });

  test('goes on after a failure', async () => {
    store = () => Promise.reject(new Error('MongoDB is away'));
    await heartbeat.tick();
    store = () => Promise.resolve();
    await heartbeat.tick();
    expect([calls.length, doubtTicks]).toEqual([2, 1]);
  });

  test('never overtakes itself', async () => {
    let answer: () => void = () => undefined;
    store = () => new Promise((resolve) => (answer = resolve));
    const first = heartbeat.tick();
    await heartbeat.tick();
    expect(calls).toHaveLength(1);
    answer();
    await first;
    store = () => Promise.resolve();
    await heartbeat.tick();
    expect(calls).toHaveLength(2);
  });

  test('ends by forgetting the publisher when everything was published', async () => {
    await heartbeat.start();
    await heartbeat.stop();
    expect(calls.at(-1)).toEqual(['forget', 'gw_1', 0]);
    expect(jest.getTimerCount()).toBe(0);
  });

  test.each([
    ['messages are left', { unpublished: 2, held: null, isOpen: false }],
    ['a doubt is left', { unpublished: 0, held: 'msg_4', isOpen: true }],
    ['a doubt behind the watermark is left', { unpublished: 0, held: null, isOpen: true }],
  ])(
    'ends with a last beat for the sweeper when %s',
    async (_what, { unpublished, held, isOpen }) => {
      state = { ...state, unpublished, behindMs: 5 };
      [heldAt, isDoubting] = [held, isOpen];
      await heartbeat.stop();
      expect(calls).toEqual([['heartbeat', 'gw_1', held ?? 'msg_5', 5]]);
    },
  );
});

import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Shown } from './when-circuit-opens.ts';
import { createCircuits, type Circuits } from './circuits.ts';

const RESET_MS = 30_000;
const endpoint = { id: 'wh_1', url: 'https://one.example/' };

let shared: Map<string, number>;
let isRedisAway: boolean;
let circuits: Circuits;

beforeEach(() => {
  jest.useFakeTimers();
  shared = new Map();
  isRedisAway = false;
  circuits = start();
});
afterEach(() => {
  circuits.stop();
  jest.useRealTimers();
});

/** What is told to a Redis that is away is lost. */
const reachable = (): Map<string, number> => (isRedisAway ? new Map<string, number>() : shared);

function start(): Circuits {
  return createCircuits({
    shared: {
      readAll: () =>
        isRedisAway ? Promise.reject(new Error('away')) : Promise.resolve(new Map(shared)),
      opened: (id, untilMs) => reachable().set(id, untilMs),
      closed: (id) => reachable().delete(id),
    },
    logger: { info: () => undefined, warn: () => undefined },
    nowMs: Date.now,
    resetMs: RESET_MS,
    maxCircuits: 100,
  });
}

function shown(outcome: Shown['outcome']): Shown {
  return { outcome, asksForPause: false, succeededLately: 0 };
}

async function open({ permit }: Circuits): Promise<void> {
  for (let n = 0; n < 10; n += 1) await permit(endpoint)(shown('timeout'));
}

const obstacleTo = (to = endpoint): number | null =>
  circuits.obstacle(to, 'first')?.untilMs ?? null;

describe('a new owner', () => {
  it('finds the circuits of the one before open, with the same time of the probe', async () => {
    await open(circuits);
    circuits.stop();
    jest.advanceTimersByTime(10_000);
    circuits = start();
    expect(obstacleTo()).toBeNull();
    await circuits.takeOver();
    expect(obstacleTo()).toBe(Date.now() + RESET_MS - 10_000);
    expect(obstacleTo({ ...endpoint, id: 'wh_2' })).toBeNull();
  });

  it('tells that a circuit of the one before has closed', async () => {
    shared.set('wh_1', Date.now() - 1);
    await circuits.takeOver();
    await circuits.permit(endpoint)(shown('success'));
    expect(shared.size).toBe(0);
    expect(obstacleTo()).toBeNull();
  });

  it('keeps what is open here when it takes over more', async () => {
    isRedisAway = true;
    await open(circuits);
    isRedisAway = false;
    await circuits.takeOver();
    expect(obstacleTo()).not.toBeNull();
    expect(shared.size).toBe(1);
  });

  it('goes on without Redis', async () => {
    isRedisAway = true;
    await circuits.takeOver();
    await open(circuits);
    expect(obstacleTo()).not.toBeNull();
  });
});

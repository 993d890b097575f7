import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { CircuitReport } from './when-circuit-opens.ts';
import { createCircuits, type Circuits } from './circuits.ts';

const RESET_MS = 30_000;
const endpoint = { id: 'wh_1', companyId: 'comp_1', url: 'https://one.example/' };

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

/** What is written to a Redis that is away is lost. */
const reachable = (): Map<string, number> => (isRedisAway ? new Map<string, number>() : shared);

function start(): Circuits {
  return createCircuits({
    shared: {
      takeOverCircuits: () =>
        isRedisAway ? Promise.reject(new Error('away')) : Promise.resolve(new Map(shared)),
      opened: (id, untilMs) => reachable().set(id, untilMs),
      closed: (id) => reachable().delete(id),
    },
    logger: { info: () => undefined, warn: () => undefined },
    report: () => undefined,
    nowMs: Date.now,
    resetMs: RESET_MS,
    maxCircuits: 100,
  });
}

function reportOf(outcome: CircuitReport['outcome']): CircuitReport {
  return { outcome, asksForHold: false, recentSuccesses: 0 };
}

async function open({ beginAttempt }: Circuits): Promise<void> {
  for (let n = 0; n < 10; n += 1) await beginAttempt(endpoint)(reportOf('timeout'));
}

function blockedUntilMs(to = endpoint): number | null {
  circuits.refresh(to);
  return circuits.blockOf(to, 'first')?.untilMs ?? null;
}

describe('a new owner', () => {
  it('inherits the open circuits of the former owner, with the same time of the probe', async () => {
    await open(circuits);
    circuits.stop();
    jest.advanceTimersByTime(10_000);
    circuits = start();
    expect(blockedUntilMs()).toBeNull();
    await circuits.takeOver();
    expect(blockedUntilMs()).toBe(Date.now() + RESET_MS - 10_000);
    expect(blockedUntilMs({ ...endpoint, id: 'wh_2' })).toBeNull();
  });

  it('reports that a circuit of the former owner has closed', async () => {
    shared.set('wh_1', Date.now() - 1);
    await circuits.takeOver();
    await circuits.beginAttempt(endpoint)(reportOf('success'));
    expect(shared.size).toBe(0);
    expect(blockedUntilMs()).toBeNull();
  });

  it('keeps its own open circuits when it takes over more partitions', async () => {
    isRedisAway = true;
    await open(circuits);
    isRedisAway = false;
    await circuits.takeOver();
    expect(blockedUntilMs()).not.toBeNull();
    expect(shared.size).toBe(1);
  });

  it('continues without Redis', async () => {
    isRedisAway = true;
    await circuits.takeOver();
    await open(circuits);
    expect(blockedUntilMs()).not.toBeNull();
  });
});

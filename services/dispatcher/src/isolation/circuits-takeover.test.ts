import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { InheritedCircuit } from '@posthorn/platform/redis/open-circuits.ts';
import type { CircuitReport } from './circuit.ts';
import { Circuits } from './circuits.ts';

const RESET_MS = 30_000;
const endpoint = { webhookId: 'wh_1', companyId: 'comp_1', url: 'https://one.example/' };
const PARTITIONS: Record<string, number> = { wh_1: 1, wh_2: 2 };

let shared: Map<string, InheritedCircuit>;
let isRedisAway: boolean;
/** Partitions on a node of Redis that does not answer. */
let hanging: Set<number>;
let circuits: Circuits;

beforeEach(() => {
  jest.useFakeTimers();
  shared = new Map();
  isRedisAway = false;
  hanging = new Set();
  circuits = start();
  void circuits.own(new Set([1, 2]));
});
afterEach(() => {
  circuits.stop();
  jest.useRealTimers();
});

/** What is written to a Redis that is away is lost. */
const reachable = (): Map<string, InheritedCircuit> =>
  isRedisAway ? new Map<string, InheritedCircuit>() : shared;

function start(): Circuits {
  return new Circuits({
    shared: {
      takeOver(partitions) {
        if (isRedisAway) return Promise.reject(new Error('away'));
        const read = partitions.filter((each) => !hanging.has(each));
        const found = [...shared].filter(([, { partition }]) => read.includes(partition));
        return Promise.resolve({ found: new Map(found), read });
      },
      opened: ({ webhookId, ...owner }, times) =>
        reachable().set(webhookId, { ...owner, ...times }),
      closed: ({ webhookId }) => reachable().delete(webhookId),
    },
    partitionOf: (webhookId) => PARTITIONS[webhookId] ?? 0,
    logger: { info: () => undefined, warn: () => undefined },
    report: () => undefined,
    nowMs: Date.now,
    resetMs: RESET_MS,
    maxCircuits: 100,
  });
}

function reportOf(outcome: CircuitReport['outcome']): CircuitReport {
  return { outcome, asksForPause: false, recentSuccesses: 0 };
}

async function open(opening: Circuits): Promise<void> {
  for (let n = 0; n < 10; n += 1) await opening.beginAttempt(endpoint)(reportOf('timeout'));
}

function blockedUntilMs(to = endpoint): number | null {
  circuits.refresh(to);
  const view = circuits.viewOf({ ...to, trigger: 'first', deferredSinceMs: null });
  return view.kind === 'closed' ? null : Date.now() + view.deferForMs;
}

describe('a new owner', () => {
  it('inherits the open circuits of the former owner, with the same time of the probe', async () => {
    await open(circuits);
    const openedAtMs = Date.now();
    circuits.stop();
    jest.advanceTimersByTime(10_000);
    circuits = start();
    expect(blockedUntilMs()).toBeNull();
    await circuits.own(new Set([1]));
    expect(blockedUntilMs()).toBe(Date.now() + RESET_MS - 10_000);
    expect(blockedUntilMs({ ...endpoint, webhookId: 'wh_2' })).toBeNull();
    jest.advanceTimersByTime(RESET_MS);
    await circuits.beginAttempt(endpoint)(reportOf('timeout'));
    expect(shared.get('wh_1')).toMatchObject({
      sinceMs: openedAtMs,
      probeAtMs: Date.now() + RESET_MS,
    });
  });

  it('reports that a circuit of the former owner has closed', async () => {
    const times = { probeAtMs: Date.now() - 1, sinceMs: 0 };
    shared.set('wh_1', { ...times, companyId: 'comp_1', partition: 1 });
    await circuits.restore();
    await circuits.beginAttempt(endpoint)(reportOf('success'));
    expect(shared.size).toBe(0);
    expect(blockedUntilMs()).toBeNull();
  });

  it('reads the partitions only that are new to it', async () => {
    await circuits.own(new Set([1]));
    const times = { probeAtMs: Date.now() + 1_000, sinceMs: 0, companyId: 'comp_1' };
    shared.set('wh_1', { ...times, partition: 1 });
    shared.set('wh_2', { ...times, partition: 2 });
    await circuits.own(new Set([1, 2]));
    expect(circuits.inherited()).toBe(1);
    expect(blockedUntilMs({ ...endpoint, webhookId: 'wh_2' })).not.toBeNull();
  });

  it('reads a partition again that could not be read', async () => {
    await circuits.own(new Set());
    const times = { probeAtMs: Date.now() + 1_000, sinceMs: 0, companyId: 'comp_1' };
    shared.set('wh_1', { ...times, partition: 1 });
    shared.set('wh_2', { ...times, partition: 2 });
    hanging.add(2);
    await circuits.own(new Set([1, 2]));
    expect(circuits.inherited()).toBe(1);
    hanging.clear();
    await circuits.own(new Set([1, 2]));
    expect(circuits.inherited()).toBe(2);
  });

  it('keeps its own open circuits when it takes over more partitions, and stores them when Redis is back', async () => {
    isRedisAway = true;
    await open(circuits);
    isRedisAway = false;
    await circuits.own(new Set([1, 2, 3]));
    expect(blockedUntilMs()).not.toBeNull();
    await circuits.restore();
    expect(blockedUntilMs()).not.toBeNull();
    expect([...shared.keys()]).toEqual(['wh_1']);
  });

  it('continues without Redis', async () => {
    isRedisAway = true;
    await circuits.own(new Set([1, 2, 3]));
    await open(circuits);
    expect(blockedUntilMs()).not.toBeNull();
  });
});

describe('a former owner', () => {
  it('never stores again what the next owner has closed', async () => {
    await open(circuits);
    await circuits.own(new Set([2]));
    const next = start();
    await next.own(new Set([1]));
    jest.advanceTimersByTime(RESET_MS);
    await next.beginAttempt(endpoint)(reportOf('success'));
    expect(shared.size).toBe(0);
    await circuits.own(new Set([2, 3]));
    await circuits.restore();
    expect(shared.size).toBe(0);
    expect(circuits.count()).toEqual({ closed: 0, open: 0, half_open: 0 });
    next.stop();
  });

  it('counts no attempt that ends after its partition has gone', async () => {
    const ends = Array.from({ length: 10 }, () => circuits.beginAttempt(endpoint));
    await circuits.own(new Set([2]));
    for (const end of ends) await end(reportOf('timeout'));
    expect(shared.size).toBe(0);
    expect(circuits.count().open).toBe(0);
  });

  it('forgets what it inherited and did not need', async () => {
    const times = { probeAtMs: Date.now(), sinceMs: 0, companyId: 'comp_1' };
    shared.set('wh_2', { ...times, partition: 2 });
    await circuits.restore();
    expect(circuits.inherited()).toBe(1);
    await circuits.own(new Set([1]));
    expect(circuits.inherited()).toBe(0);
    await circuits.own(new Set([1, 2]));
    expect(circuits.inherited()).toBe(1);
    jest.advanceTimersByTime(13 * 3_600_000);
    expect(circuits.inherited()).toBe(0);
    expect(shared.size).toBe(0);
  });
});

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { planCapacity, type Capacity } from './capacity.ts';
import type { Load } from './constants.ts';

const MIB = 1_048_576;
const LIMITS = { gateway: 512 * MIB, dispatcher: 768 * MIB, retry: 512 * MIB };

const LOAD: Load = {
  messagesPerSecond: 1_000,
  targetsPerMessage: 1,
  days: 30,
  payloadBytes: 1_000,
  responseBytes: 100,
  endpointLatencyMs: 100,
  failureShare: 0.02,
  growth: 2,
  kafkaCopies: 3,
};

function plan(changed: Partial<Load> = {}): Capacity {
  return planCapacity({ ...LOAD, ...changed }, LIMITS);
}

const loads = fc.record({
  messagesPerSecond: fc.integer({ min: 1, max: 20_000 }),
  targetsPerMessage: fc.integer({ min: 1, max: 100 }).map((tenths) => tenths / 10),
  days: fc.integer({ min: 1, max: 400 }),
  payloadBytes: fc.integer({ min: 2, max: 262_144 }),
  responseBytes: fc.integer({ min: 1, max: 100_000 }),
  endpointLatencyMs: fc.integer({ min: 1, max: 3_000 }),
  failureShare: fc.integer({ min: 0, max: 990 }).map((thousandths) => thousandths / 1_000),
  growth: fc.integer({ min: 1, max: 4 }),
  kafkaCopies: fc.integer({ min: 1, max: 5 }),
});

/**
 * What grows with the load, as numbers. Memory need not: it is that of whole processes, whose number divides the
 * partitions: 24 dispatchers of 96 partitions take more than 18 of 108.
 */
function sizesOf({ processes, mongodb, kafka, cores }: Capacity): number[] {
  const { gateways, partitions } = processes;
  const disks = [mongodb.diskTerabytes, kafka.diskTerabytes, kafka.megabytesPerSecond];
  return [gateways, partitions, kafka.replicas, mongodb.cores, ...disks, cores];
}

/** Reads the numbers and signs of a printed calculation, past its words, and calculates it. */
function recomputed(how: string): number {
  const tokens = how.match(/\d[\d,.]*|[×÷+^()]/g) ?? [];
  const next = (...signs: string[]): string | undefined =>
    signs.includes(tokens[0] ?? '') ? tokens.shift() : undefined;
  const sum = (): number => {
    let value = product();
    while (next('+')) value += product();
    return value;
  };
  const product = (): number => {
    let value = power();
    for (let sign = next('×', '÷'); sign; sign = next('×', '÷')) {
      value = sign === '×' ? value * power() : value / power();
    }
    return value;
  };
  const power = (): number => {
    const value = atom();
    return next('^') ? value ** atom() : value;
  };
  const atom = (): number => {
    if (!next('(')) return Number((tokens.shift() ?? '').replaceAll(',', ''));
    const value = sum();
    next(')');
    return value;
  };
  return sum();
}

describe('planCapacity', () => {
  it('gives values that follow from the arithmetic as it is printed, to a hundredth', () => {
    fc.assert(
      fc.property(loads, (load) => {
        const lines = planCapacity(load, LIMITS).sections.flatMap((section) => section.lines);
        const products = lines.filter(({ sign }) => sign === '=');
        expect(products.length).toBeGreaterThan(20);
        const wrong = products.filter(
          ({ how, value }) => !(Math.abs(recomputed(how) - value) <= Math.abs(value) / 100),
        );
        expect(wrong).toEqual([]);
      }),
    );
  });

  it('plans at least as much for more messages', () => {
    fc.assert(
      fc.property(loads, fc.integer({ min: 1, max: 20_000 }), (load, more) => {
        const less = sizesOf(planCapacity(load, LIMITS));
        const messagesPerSecond = load.messagesPerSecond + more;
        const greater = sizesOf(planCapacity({ ...load, messagesPerSecond }, LIMITS));
        expect(greater.map((value, index) => value >= (less[index] ?? 0))).not.toContain(false);
      }),
    );
  });

  it('gives each dispatcher and each retry process the same number of partitions', () => {
    fc.assert(
      fc.property(loads, (load) => {
        const { processes, replicaSteps } = planCapacity(load, LIMITS);
        const { partitions, dispatchers, retryProcesses } = processes;
        expect([partitions % dispatchers, partitions % retryProcesses]).toEqual([0, 0]);
        expect(replicaSteps).toEqual(expect.arrayContaining([dispatchers, retryProcesses]));
      }),
    );
  });

  it('gives a small installation two processes of each service, and 12 partitions', () => {
    expect(plan({ messagesPerSecond: 10 }).processes).toEqual({
      gateways: 2,
      dispatchers: 2,
      retryProcesses: 2,
      partitions: 12,
    });
  });

  it('plans dispatchers by latency where that needs more than their CPU', () => {
    // 10,200 attempts a second: by CPU 4.1 processes, with 0.9 s for each attempt 4.6.
    expect(plan({ messagesPerSecond: 10_000 }).processes.dispatchers).toBe(6);
    const { dispatchers } = plan({ messagesPerSecond: 10_000, endpointLatencyMs: 900 }).processes;
    expect(dispatchers).toBe(6);
    const slower = plan({ messagesPerSecond: 10_000, endpointLatencyMs: 2_000 }).processes;
    // In the slow lane: 10,200 × 2 s ÷ 500 = 41, the next divisor of 96.
    expect(slower).toMatchObject({ dispatchers: 48, partitions: 96 });
  });

  it('counts no payload in Kafka that is too large for a record, or goes to too many webhooks', () => {
    const carried = plan({ payloadBytes: 16_384 }).kafka.diskTerabytes;
    expect(plan({ payloadBytes: 16_385 }).kafka.diskTerabytes).toBeLessThan(carried / 10);
    const perTarget = (targetsPerMessage: number): number =>
      plan({ targetsPerMessage }).kafka.diskTerabytes / targetsPerMessage;
    expect(perTarget(33)).toBeLessThan(perTarget(32) / 2);
  });

  it('counts seven attempts at most', () => {
    const { lines } = plan({ failureShare: 0.99 }).sections[0] ?? { lines: [] };
    const retries = lines.find(({ what }) => what === 'retries of a delivery');
    expect(retries?.value).toBeGreaterThan(5.7);
    expect(retries?.value).toBeLessThan(6);
  });
});

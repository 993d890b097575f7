import { beforeEach, describe, expect, it } from '@jest/globals';
import { createAttemptLeases, type AttemptLeases } from './attempt-leases.ts';

let clockMs: number;
let announced: [ids: readonly string[], ttlMs: number][];
let withdrawn: string[];
let leases: AttemptLeases;

beforeEach(() => {
  [clockMs, announced, withdrawn] = [0, [], []];
  leases = createAttemptLeases({
    running: {
      announce: (ids, ttlMs) => announced.push([ids, ttlMs]),
      withdraw: (ids) => withdrawn.push(...ids),
    },
    ...{ monotonicMs: () => clockMs, timeoutMs: 15_000 },
  });
});

function tickAfter(ms: number): void {
  clockMs += ms;
  leases.tick();
}

describe('a lease', () => {
  it('that ends within 50 ms is never announced', () => {
    const release = leases.take('att_1');
    tickAfter(49);
    release();
    tickAfter(50);
    expect([announced, withdrawn]).toEqual([[], []]);
  });

  it('that lasts is announced once, for the time-out and five seconds, and withdrawn at its end', () => {
    const release = leases.take('att_1');
    tickAfter(50);
    tickAfter(50);
    expect(announced).toEqual([[['att_1'], 20_000]]);
    release();
    tickAfter(50);
    expect(withdrawn).toEqual(['att_1']);
  });

  it('is announced together with others, the young ones later', () => {
    leases.take('att_1');
    leases.take('att_2');
    clockMs += 30;
    leases.take('att_3');
    tickAfter(20);
    expect(announced.map(([ids]) => ids)).toEqual([['att_1', 'att_2']]);
    tickAfter(30);
    expect(announced.map(([ids]) => ids).at(-1)).toEqual(['att_3']);
  });

  it('is had alone only after those that were taken before, one after the other', async () => {
    const order: string[] = [];
    const first = leases.take('att_1');
    const others = ['second', 'third'].map(async (name) => {
      const release = await leases.takeAlone('att_1');
      order.push(name);
      release();
    });
    const free = await leases.takeAlone('att_2');
    expect(order).toEqual([]);
    free();
    first();
    await Promise.all(others);
    expect(order).toEqual(['second', 'third']);
  });
});

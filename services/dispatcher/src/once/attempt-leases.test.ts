import { beforeEach, describe, expect, it } from '@jest/globals';
import { createAttemptLeases, type AttemptLeases } from './attempt-leases.ts';

let clockMs: number;
let announced: string[][];
let withdrawn: string[];
/** Attempts that another process works on. */
let elsewhere: Set<string>;
let isRedisAway: boolean;
let leases: AttemptLeases;

beforeEach(() => {
  [clockMs, announced, withdrawn, isRedisAway] = [0, [], [], false];
  elsewhere = new Set();
  leases = createAttemptLeases({
    running: {
      announce: (ids) => announced.push([...ids]),
      withdraw: (ids) => withdrawn.push(...ids),
      claim: (ids) =>
        isRedisAway
          ? Promise.reject(new Error('away'))
          : Promise.resolve(new Set(ids.filter((id) => !elsewhere.has(id)))),
    },
    monotonicMs: () => clockMs,
    // The other process ends its work while this one waits.
    wait: (ms) => {
      elsewhere = new Set();
      return ms < 1_000 ? Promise.resolve() : new Promise(() => undefined);
    },
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

  it('that lasts is announced, told again every four seconds, and withdrawn at its end', () => {
    const release = leases.take('att_1');
    tickAfter(50);
    tickAfter(50);
    expect(announced).toEqual([['att_1']]);
    tickAfter(4_000);
    expect(announced).toEqual([['att_1'], ['att_1']]);
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
    expect(announced).toEqual([['att_1', 'att_2']]);
    tickAfter(30);
    expect(announced.at(-1)).toEqual(['att_3']);
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

  it('is had alone only after another process has ended its work', async () => {
    elsewhere = new Set(['att_1']);
    await leases.takeAlone('att_1');
    expect(elsewhere.size).toBe(0);
  });

  it('is not waited for when the work on it lasts for ever', async () => {
    leases.take('att_1');
    clockMs += 120_000;
    await leases.takeAlone('att_1');
    expect(leases.isKnown('att_1')).toBe(true);
  });

  it('is known from its beginning and beyond its end', () => {
    expect(leases.isKnown('att_1')).toBe(false);
    const release = leases.take('att_1');
    expect(leases.isKnown('att_1')).toBe(true);
    release();
    expect(leases.isKnown('att_1')).toBe(true);
  });

  it('is had at once when Redis is away', async () => {
    isRedisAway = true;
    await leases.takeAlone('att_1');
    expect(withdrawn).toEqual([]);
  });

  it('that begins anew right after its end is not withdrawn', async () => {
    (await leases.takeAlone('att_1'))();
    const release = await leases.takeAlone('att_1');
    tickAfter(50);
    expect(withdrawn).toEqual([]);
    release();
    tickAfter(50);
    expect(withdrawn).toEqual(['att_1']);
  });
});

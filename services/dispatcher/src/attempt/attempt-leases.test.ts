import { beforeEach, describe, expect, it, test } from '@jest/globals';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import {
  createLeaseHarness,
  type LeaseHarness,
} from '../../../../test/support/isolation/lease-harness.ts';
import { createRecentIds } from './attempt-leases.ts';

let at: LeaseHarness;

beforeEach(() => {
  at = createLeaseHarness();
});

describe('a lease', () => {
  it('is never announced when it is released within 120 ms', () => {
    const { release } = at.take('att_1');
    at.tickAfter(119);
    release();
    at.tickAfter(120);
    expect([at.announced, at.withdrawn]).toEqual([[], []]);
  });

  it('is announced at once when partitions are about to change hands', () => {
    at.take('att_1');
    at.take('att_2').release();
    at.leases.announceAll();
    at.tickAfter(120);
    expect(at.announced).toEqual([['att_1']]);
  });

  it('is announced with the next tick when it is taken while partitions change hands', () => {
    at.take('att_1');
    at.leases.announceAll();
    at.take('att_2');
    at.tickAfter(50);
    expect(at.announced).toEqual([['att_1'], ['att_2']]);
    at.tickAfter(20_000);
    at.take('att_3');
    at.tickAfter(50);
    expect(at.announced.flat()).not.toContain('att_3');
  });

  it('is announced after 120 ms, renewed every four seconds, and withdrawn when it is released', () => {
    const { release } = at.take('att_1');
    at.tickAfter(120);
    at.tickAfter(120);
    expect(at.announced).toEqual([['att_1']]);
    at.tickAfter(4_000);
    expect(at.announced).toEqual([['att_1'], ['att_1']]);
    release();
    at.tickAfter(120);
    expect(at.withdrawn).toEqual(['att_1']);
  });

  it('is announced together with others of its age', () => {
    at.take('att_1');
    at.take('att_2');
    at.clockMs += 30;
    at.take('att_3');
    at.tickAfter(90);
    expect(at.announced).toEqual([['att_1', 'att_2']]);
    at.tickAfter(30);
    expect(at.announced.at(-1)).toEqual(['att_3']);
  });

  it('is taken by those that wait for it one after the other', async () => {
    const order: string[] = [];
    const first = at.take('att_1');
    const others = ['second', 'third'].map(async (name) => {
      const { release } = await at.takeWhenFree('att_1');
      order.push(name);
      release();
    });
    const free = await at.takeWhenFree('att_2');
    expect(order).toEqual([]);
    free.release();
    first.release();
    await Promise.all(others);
    expect(order).toEqual(['second', 'third']);
  });

  it('is taken when another process has ended its work', async () => {
    at.elsewhere = new Set(['att_1']);
    await at.takeWhenFree('att_1');
    expect(at.elsewhere.size).toBe(0);
  });

  describe('of a process that was suspended', () => {
    it('has lapsed after 4 s when it was never announced', () => {
      const lease = at.take('att_1');
      at.clockMs += 3_999;
      expect(lease.begin()).toBe(true);
      at.clockMs += 1;
      expect(lease.begin()).toBe(false);
    });

    it('has lapsed 9 s after its last announcement', () => {
      const lease = at.take('att_1');
      at.tickAfter(120);
      at.tickAfter(4_000);
      at.clockMs += 8_999;
      expect(lease.begin()).toBe(true);
      at.clockMs += 1;
      expect(lease.begin()).toBe(false);
    });

    it('is neither announced nor withdrawn once it has lapsed: Redis may have that of another process', () => {
      const lease = at.take('att_1');
      at.tickAfter(120);
      at.tickAfter(9_000);
      lease.release();
      at.tickAfter(120);
      expect([at.announced, at.withdrawn]).toEqual([[['att_1']], []]);
    });

    it('is not withdrawn when it is released before the first tick', () => {
      const lease = at.take('att_1');
      at.tickAfter(120);
      at.clockMs += 9_000;
      lease.release();
      at.tickAfter(120);
      expect(at.withdrawn).toEqual([]);
    });
  });

  it('makes its attempt known, also after its release', () => {
    expect(at.leases.isKnown('att_1')).toBe(false);
    const { release } = at.take('att_1');
    expect(at.leases.isKnown('att_1')).toBe(true);
    release();
    expect(at.leases.isKnown('att_1')).toBe(true);
  });

  it('is taken at once when Redis is away', async () => {
    at.isRedisAway = true;
    await at.takeWhenFree('att_1');
    expect(at.withdrawn).toEqual([]);
  });

  it('makes its attempt known while it is waited for: a copy of its record must not be attempted beside it', async () => {
    at.elsewhere.add('att_1');
    const waiting = at.takeWhenFree('att_1');
    expect(at.leases.isKnown('att_1')).toBe(true);
    (await waiting).release();
  });

  it('is waited for no longer than the partition is read here', async () => {
    at.take('att_1');
    const waiting = at.takeWhenFree('att_1');
    at.areOurs = false;
    at.endWait();
    await expect(waiting).rejects.toThrow(StoppedError);
  });

  it('is waited for no longer than the process lives', async () => {
    at.take('att_1');
    const waiting = at.takeWhenFree('att_1');
    at.isStopping = true;
    at.endWait();
    await expect(waiting).rejects.toThrow(StoppedError);
  });

  it('is not withdrawn while it is claimed again after its release', async () => {
    (await at.takeWhenFree('att_1')).release();
    const claiming = at.takeWhenFree('att_1');
    at.tickAfter(120);
    const { release } = await claiming;
    at.tickAfter(120);
    expect(at.withdrawn).toEqual([]);
    release();
    at.tickAfter(120);
    expect(at.withdrawn).toEqual(['att_1']);
  });

  it('is not withdrawn when it was taken again right after its release', async () => {
    (await at.takeWhenFree('att_1')).release();
    const { release } = await at.takeWhenFree('att_1');
    at.tickAfter(120);
    expect(at.withdrawn).toEqual([]);
    release();
    at.tickAfter(120);
    expect(at.withdrawn).toEqual(['att_1']);
  });
});

test('the newest are remembered, and what is far older is not', () => {
  const recent = createRecentIds(100);
  for (let n = 0; n < 1_000; n += 1) {
    recent.add(`id-${n}`);
    expect(recent.has(`id-${Math.max(0, n - 99)}`)).toBe(true);
    expect(recent.has(`id-${n - 200}`)).toBe(false);
  }
});

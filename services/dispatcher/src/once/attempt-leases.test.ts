import { beforeEach, describe, expect, it } from '@jest/globals';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import { createAttemptLeases, type AttemptLeases, type HeldLease } from './attempt-leases.ts';

let clockMs: number;
let outageFreeMs: number;
let announced: string[][];
let withdrawn: string[];
let released: string[];
/** Attempts that another process works on. */
let elsewhere: Set<string>;
let isRedisAway: boolean;
let isStopping: boolean;
let stop: (value?: unknown) => void;
/** Whether the partitions of the records are still read here. */
let areOurs: boolean;
let leases: AttemptLeases;

const isOurs = (): boolean => areOurs;
const take = (attemptId: string): HeldLease => leases.take(attemptId, isOurs);
const takeWhenFree = (attemptId: string): Promise<HeldLease> =>
  leases.takeWhenFree(attemptId, isOurs);

beforeEach(() => {
  [clockMs, outageFreeMs] = [0, 0];
  [announced, withdrawn, released] = [[], [], []];
  [isRedisAway, isStopping, areOurs] = [false, false, true];
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
    onReleased: (id) => released.push(id),
    monotonicMs: () => clockMs,
    outageFreeMs: () => outageFreeMs,
    // The other process ends its work while this one waits.
    wait: (ms, signal) => {
      elsewhere = new Set();
      if (ms < 1_000) return Promise.resolve();
      return new Promise((resolve) => {
        stop = resolve;
        signal?.addEventListener('abort', resolve);
      });
    },
    isStopping: () => isStopping,
  });
});

function tickAfter(ms: number): void {
  clockMs += ms;
  leases.tick();
}

describe('a lease', () => {
  it('is never announced when it is released within 50 ms', () => {
    const { release } = take('att_1');
    tickAfter(49);
    release();
    tickAfter(50);
    expect([announced, withdrawn]).toEqual([[], []]);
  });

  it('is announced at once when partitions are about to change hands', () => {
    take('att_1');
    take('att_2').release();
    leases.announceAll();
    tickAfter(50);
    expect(announced).toEqual([['att_1']]);
  });

  it('is announced after 50 ms, renewed every four seconds, and withdrawn when it is released', () => {
    const { release } = take('att_1');
    tickAfter(50);
    tickAfter(50);
    expect(announced).toEqual([['att_1']]);
    tickAfter(4_000);
    expect(announced).toEqual([['att_1'], ['att_1']]);
    release();
    tickAfter(50);
    expect(withdrawn).toEqual(['att_1']);
  });

  it('is announced together with others of its age', () => {
    take('att_1');
    take('att_2');
    clockMs += 30;
    take('att_3');
    tickAfter(20);
    expect(announced).toEqual([['att_1', 'att_2']]);
    tickAfter(30);
    expect(announced.at(-1)).toEqual(['att_3']);
  });

  it('is taken by those that wait for it one after the other', async () => {
    const order: string[] = [];
    const first = take('att_1');
    const others = ['second', 'third'].map(async (name) => {
      const { release } = await takeWhenFree('att_1');
      order.push(name);
      release();
    });
    const free = await takeWhenFree('att_2');
    expect(order).toEqual([]);
    free.release();
    first.release();
    await Promise.all(others);
    expect(order).toEqual(['second', 'third']);
  });

  it('is taken when another process has ended its work', async () => {
    elsewhere = new Set(['att_1']);
    await takeWhenFree('att_1');
    expect(elsewhere.size).toBe(0);
  });

  describe('of a process that was suspended', () => {
    it('has lapsed after 4 s when it was never announced', () => {
      const lease = take('att_1');
      clockMs += 3_999;
      expect(lease.begin()).toBe(true);
      clockMs += 1;
      expect(lease.begin()).toBe(false);
    });

    it('has lapsed 9 s after its last announcement', () => {
      const lease = take('att_1');
      tickAfter(50);
      tickAfter(4_000);
      clockMs += 8_999;
      expect(lease.begin()).toBe(true);
      clockMs += 1;
      expect(lease.begin()).toBe(false);
    });

    it('is neither announced nor withdrawn once it has lapsed: Redis may have that of another process', () => {
      const lease = take('att_1');
      tickAfter(50);
      tickAfter(9_000);
      lease.release();
      tickAfter(50);
      expect([announced, withdrawn]).toEqual([[['att_1']], []]);
    });

    it('is not withdrawn when it is released before the first tick', () => {
      const lease = take('att_1');
      tickAfter(50);
      clockMs += 9_000;
      lease.release();
      tickAfter(50);
      expect(withdrawn).toEqual([]);
    });
  });

  describe('without a release within 120 s in which the stores answer', () => {
    /** Whether the lease was taken over, and whether it is still announced to other processes. */
    async function lookAfter(ms: number): Promise<{ isTakenOver: boolean; announced: string[] }> {
      tickAfter(50);
      for (let passedMs = 0; passedMs < ms; passedMs += 4_000) {
        announced = [];
        tickAfter(4_000);
      }
      let isTakenOver = false;
      void takeWhenFree('att_1').then(() => (isTakenOver = true));
      // Claimed together with the first, and granted after it.
      (await takeWhenFree('att_other')).release();
      return { isTakenOver, announced: announced.flat() };
    }

    it('is taken over when its record is not ours any more', async () => {
      take('att_1');
      areOurs = false;
      outageFreeMs += 120_000;
      expect(await lookAfter(120_000)).toEqual({ isTakenOver: true, announced: [] });
    });

    it('begins no request once it is taken over', async () => {
      const hung = take('att_1');
      areOurs = false;
      outageFreeMs += 120_000;
      const next = await takeWhenFree('att_1');
      expect([hung.begin(), next.begin()]).toEqual([false, true]);
    });

    it('is kept for as long while its record is ours: it waits for its turn', async () => {
      take('att_1');
      outageFreeMs += 600_000;
      expect(await lookAfter(600_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
    });

    it('is kept for another 120 s when its request has begun', async () => {
      const lease = take('att_1');
      areOurs = false;
      outageFreeMs += 119_999;
      lease.begin();
      outageFreeMs += 119_999;
      expect(await lookAfter(4_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
    });

    it('is kept while a store is away, however long that takes', async () => {
      take('att_1');
      areOurs = false;
      expect(await lookAfter(600_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
    });

    it('is kept when the request was made, until that is recorded', async () => {
      const lease = take('att_1');
      lease.markMade();
      areOurs = false;
      outageFreeMs += 600_000;
      expect(await lookAfter(600_000)).toEqual({ isTakenOver: false, announced: ['att_1'] });
      lease.release();
      await takeWhenFree('att_2');
      expect(leases.isHeld('att_1')).toBe(true);
    });
  });

  it('is held until it is released, which is reported', () => {
    expect(leases.isHeld('att_1')).toBe(false);
    const { release } = take('att_1');
    expect(leases.isHeld('att_1')).toBe(true);
    release();
    expect([leases.isHeld('att_1'), released]).toEqual([false, ['att_1']]);
  });

  it('is taken at once when Redis is away', async () => {
    isRedisAway = true;
    await takeWhenFree('att_1');
    expect(withdrawn).toEqual([]);
  });

  it('is waited for no longer than the process lives', async () => {
    take('att_1');
    const waiting = takeWhenFree('att_1');
    isStopping = true;
    stop();
    await expect(waiting).rejects.toThrow(StoppedError);
  });

  it('is not withdrawn while it is claimed again after its release', async () => {
    (await takeWhenFree('att_1')).release();
    const claiming = takeWhenFree('att_1');
    tickAfter(50);
    const { release } = await claiming;
    tickAfter(50);
    expect(withdrawn).toEqual([]);
    release();
    tickAfter(50);
    expect(withdrawn).toEqual(['att_1']);
  });

  it('is not withdrawn when it was taken again right after its release', async () => {
    (await takeWhenFree('att_1')).release();
    const { release } = await takeWhenFree('att_1');
    tickAfter(50);
    expect(withdrawn).toEqual([]);
    release();
    tickAfter(50);
    expect(withdrawn).toEqual(['att_1']);
  });
});

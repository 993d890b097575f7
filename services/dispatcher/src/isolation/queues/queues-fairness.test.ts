import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueBench,
  type Entered,
  type QueueBench,
} from '../../../../../test/support/isolation/queue-bench.ts';

let bench: QueueBench;
let running: Entered[];

/** All places are taken by one endpoint that has nothing else to do. */
beforeEach(async () => {
  const limits = { perEndpoint: { floor: 200, start: 200, ceiling: 200 }, fast: 100 };
  bench = createQueueBench({ limits });
  running = await bench.enter('busy', 'first', 100);
});

/** Lets so many of those under way end, one after the other. */
async function free(places: number): Promise<void> {
  for (const each of running.splice(0, places)) await bench.finish([each]);
}

describe('endpoints that share the places', () => {
  it('take turns, however long the queue of one of them is', async () => {
    const many = await bench.enter('many', 'first', 140);
    const few = await bench.enter('few', 'first', 2);
    await free(4);
    expect([count(few).turns, count(many).turns]).toEqual([2, 2]);
  });

  it('give one turn in four to retries where first attempts wait as well', async () => {
    const retries = await bench.enter('r', 'retry', 20);
    const first = await bench.enter('r', 'first', 20);
    await free(8);
    expect([count(first).turns, count(retries).turns]).toEqual([6, 2]);
  });

  it.each([2, 4, 8])('give it to the retries of each of %i endpoints', async (endpoints) => {
    const retries = await Promise.all(
      Array.from({ length: endpoints }, async (_, n) => {
        await bench.enter(`r${n}`, 'first', 50);
        return bench.enter(`r${n}`, 'retry', 10);
      }),
    );
    await free(8 * endpoints);
    expect(retries.map((each) => count(each).turns)).toEqual(retries.map(() => 2));
  });

  it('never let retries wait where no first attempt does', async () => {
    const retries = await bench.enter('r', 'retry', 20);
    await free(8);
    expect(count(retries).turns).toBe(8);
  });
});

describe('companies that share the places', () => {
  it('take turns, however many endpoints one of them has', async () => {
    const crowd = await bench.enter('crowd-0', 'first', 1, { companyId: 'large' });
    for (let n = 1; n < 2_000; n += 1) {
      void bench.enter(`crowd-${n}`, 'first', 1, { companyId: 'large' });
    }
    const [lone] = await bench.enter('lone', 'first', 1, { companyId: 'small' });
    await free(1);
    expect(count(crowd).turns).toBe(1);
    await free(1);
    expect(lone?.admission?.kind).toBe('turn');
  });

  it('have the very next place when the other one was served last', async () => {
    for (let n = 0; n < 2_000; n += 1) {
      void bench.enter(`crowd-${n}`, 'first', 1, { companyId: 'large' });
    }
    await free(1);
    const [lone] = await bench.enter('lone', 'first', 1, { companyId: 'small' });
    await free(1);
    await free(1);
    expect(lone?.admission?.kind).toBe('turn');
  });

  it('get half of the places each, and the endpoints of a company take turns within its half', async () => {
    const one = await bench.enter('one', 'first', 20, { companyId: 'small' });
    const two = await bench.enter('two', 'first', 20, { companyId: 'large' });
    const three = await bench.enter('three', 'first', 20, { companyId: 'large' });
    await free(16);
    expect([one, two, three].map((each) => count(each).turns)).toEqual([8, 4, 4]);
  });

  it('leave no place empty: a lone one gets every place', async () => {
    const all = await bench.enter('one', 'first', 50);
    await free(50);
    expect(count(all).turns).toBe(50);
  });
});

describe('a place that has just come free', () => {
  it('goes to who waits, and not to who comes in the same moment', async () => {
    const [waits] = await bench.enter('waits', 'first', 1);
    const [ends] = running;
    void ends?.turn?.end({ outcome: 'success', statusCode: 200, retryAfterMs: null });
    const [comes] = await bench.enter('comes', 'first', 1);
    expect(waits?.admission?.kind).toBe('turn');
    expect(comes?.admission).toBeUndefined();
  });
});

describe('a turn of the event loop', () => {
  const begun = (all: readonly Entered[]): number => count(all).turns;

  beforeEach(() => {
    bench = createQueueBench({ limits: { beginsATurn: { fast: 4, slow: 1 } } });
  });

  it('begins some of the attempts that come due together, and the next one goes on', async () => {
    const all = await bench.enter('a', 'first', 10);
    expect(begun(all)).toBe(4);
    await bench.nextTurn();
    expect(begun(all)).toBe(8);
    await bench.nextTurn();
    await bench.nextTurn();
    expect(begun(all)).toBe(10);
  });

  it('serves a company that comes later as soon as the one that has a thousand', async () => {
    const many = await bench.enter('many', 'first', 16);
    const few = await bench.enter('few', 'first', 2);
    await bench.nextTurn();
    expect([begun(many), begun(few)]).toEqual([4 + 2, 2]);
  });

  it('has a part for the slow lane', async () => {
    const fast = await bench.enter('a', 'first', 10);
    const slow = await bench.enter('b', 'slow', 3);
    expect([begun(fast), begun(slow)]).toEqual([4, 1]);
    await bench.nextTurn();
    expect([begun(fast), begun(slow)]).toEqual([8, 2]);
  });

  it('defers and moves nobody for it', async () => {
    bench.maxWait.ms = 1;
    const all = await bench.enter('a', 'first', 10);
    expect(count(all)).toEqual({ turns: 4, waiting: 6, deferred: 0, slowLane: 0 });
  });
});

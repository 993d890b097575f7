import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueHarness,
  type Entered,
  type QueueHarness,
} from '../../../../test/support/isolation/queue-harness.ts';

let harness: QueueHarness;
let running: Entered[];

/** All slots are taken by one endpoint that has nothing else to do. */
beforeEach(async () => {
  const limits = { perEndpoint: { floor: 200, start: 200, ceiling: 200 }, fast: 100 };
  harness = createQueueHarness({ limits });
  running = await harness.enter('busy', 'first', 100);
});

/** Ends this many of the attempts under way, one after the other. */
async function free(slots: number): Promise<void> {
  for (const each of running.splice(0, slots)) await harness.finish([each]);
}

describe('endpoints that share the slots', () => {
  it('get slots in rotation, however long the queue of one of them is', async () => {
    const many = await harness.enter('many', 'first', 140);
    const few = await harness.enter('few', 'first', 2);
    await free(4);
    expect([count(few).started, count(many).started]).toEqual([2, 2]);
  });

  it('give one slot in four to retries while first attempts wait', async () => {
    const retries = await harness.enter('r', 'retry', 20);
    const first = await harness.enter('r', 'first', 20);
    await free(8);
    expect([count(first).started, count(retries).started]).toEqual([6, 2]);
  });

  it.each([2, 4, 8])(
    'give one slot in four to the retries of each of %i endpoints',
    async (endpoints) => {
      const retries = await Promise.all(
        Array.from({ length: endpoints }, async (_, n) => {
          await harness.enter(`r${n}`, 'first', 50);
          return harness.enter(`r${n}`, 'retry', 10);
        }),
      );
      await free(8 * endpoints);
      expect(retries.map((each) => count(each).started)).toEqual(retries.map(() => 2));
    },
  );

  it('let retries have every slot while no first attempt waits', async () => {
    const retries = await harness.enter('r', 'retry', 20);
    await free(8);
    expect(count(retries).started).toBe(8);
  });
});

describe('companies that share the slots', () => {
  it('get slots in rotation, however many endpoints one of them has', async () => {
    const crowd = await harness.enter('crowd-0', 'first', 1, { companyId: 'large' });
    for (let n = 1; n < 2_000; n += 1) {
      void harness.enter(`crowd-${n}`, 'first', 1, { companyId: 'large' });
    }
    const [lone] = await harness.enter('lone', 'first', 1, { companyId: 'small' });
    await free(1);
    expect(count(crowd).started).toBe(1);
    await free(1);
    expect(lone?.admission?.kind).toBe('slot');
  });

  it('get the next slot when the other company was served last', async () => {
    for (let n = 0; n < 2_000; n += 1) {
      void harness.enter(`crowd-${n}`, 'first', 1, { companyId: 'large' });
    }
    await free(1);
    const [lone] = await harness.enter('lone', 'first', 1, { companyId: 'small' });
    await free(1);
    await free(1);
    expect(lone?.admission?.kind).toBe('slot');
  });

  it('get half of the slots each, and the endpoints of a company share its half', async () => {
    const one = await harness.enter('one', 'first', 20, { companyId: 'small' });
    const two = await harness.enter('two', 'first', 20, { companyId: 'large' });
    const three = await harness.enter('three', 'first', 20, { companyId: 'large' });
    await free(16);
    expect([one, two, three].map((each) => count(each).started)).toEqual([8, 4, 4]);
  });

  it('leave no slot empty: a single company gets every slot', async () => {
    const all = await harness.enter('one', 'first', 50);
    await free(50);
    expect(count(all).started).toBe(50);
  });
});

describe('a slot that has just come free', () => {
  it('goes to an attempt that waits, not to one that comes at the same moment', async () => {
    const [waits] = await harness.enter('waits', 'first', 1);
    const [ends] = running;
    void ends?.slot?.end({ outcome: 'success', statusCode: 200, retryAfterMs: null });
    const [comes] = await harness.enter('comes', 'first', 1);
    expect(waits?.admission?.kind).toBe('slot');
    expect(comes?.admission).toBeUndefined();
  });
});

describe('an iteration of the event loop', () => {
  const begun = (all: readonly Entered[]): number => count(all).started;

  beforeEach(() => {
    harness = createQueueHarness({ limits: { startsPerLoop: { fast: 4, slow: 1 } } });
  });

  it('starts some of the attempts that come due together, and the next iteration continues', async () => {
    const all = await harness.enter('a', 'first', 10);
    expect(begun(all)).toBe(4);
    await harness.nextLoop();
    expect(begun(all)).toBe(8);
    await harness.nextLoop();
    await harness.nextLoop();
    expect(begun(all)).toBe(10);
  });

  it('serves a company that comes later as soon as one with a thousand attempts', async () => {
    const many = await harness.enter('many', 'first', 16);
    const few = await harness.enter('few', 'first', 2);
    await harness.nextLoop();
    expect([begun(many), begun(few)]).toEqual([4 + 2, 2]);
  });

  it('has a share for the slow lane', async () => {
    const fast = await harness.enter('a', 'first', 10);
    const slow = await harness.enter('b', 'slow', 3);
    expect([begun(fast), begun(slow)]).toEqual([4, 1]);
    await harness.nextLoop();
    expect([begun(fast), begun(slow)]).toEqual([8, 2]);
  });

  it('defers and moves no attempt because its share is used up', async () => {
    harness.maxWait.ms = 1;
    const all = await harness.enter('a', 'first', 10);
    expect(count(all)).toEqual({ started: 4, waiting: 6, deferred: 0, slowLane: 0 });
  });
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueHarness,
  type Entered,
  type QueueHarness,
} from '../../../../test/support/isolation/queue-harness.ts';

let harness: QueueHarness;

beforeEach(() => {
  harness = createQueueHarness();
});

async function slowDown(): Promise<Entered[]> {
  const all = await harness.enter('a', 'first', 40);
  await harness.pass(1_100);
  return all;
}

describe('an endpoint with an attempt that takes a second', () => {
  it('moves waiting and new attempts of its fast queues to the slow lane', async () => {
    expect(count(await slowDown())).toMatchObject({ started: 16, slowLane: 24 });
    expect(count(await harness.enter('a', 'first', 5)).slowLane).toBe(5);
    expect(count(await harness.enter('a', 'retry', 5)).slowLane).toBe(5);
    expect(count(await harness.enter('b', 'first', 5)).started).toBe(5);
  });

  it('lets attempts from the slow lane wait for a slot', async () => {
    await slowDown();
    expect(count(await harness.enter('a', 'slow', 300)).waiting).toBe(300);
  });

  it('has one attempt outside the slow lane at a time until one shows that it is fast again', async () => {
    await harness.finish(await slowDown());
    const tried = await harness.enter('a', 'first', 3);
    expect(count(tried)).toMatchObject({ started: 1, slowLane: 2 });
    await harness.pass(10);
    await harness.finish(tried);
    expect(count(await harness.enter('a', 'first', 3)).started).toBe(3);
  });

  it('counts as fast again after a minute without traffic', async () => {
    await harness.finish(await slowDown());
    await harness.pass(59_000);
    expect(count(await harness.enter('a', 'retry', 2)).slowLane).toBe(1);
    harness = createQueueHarness();
    await harness.finish(await slowDown());
    await harness.pass(60_000);
    expect(count(await harness.enter('a', 'first', 3)).started).toBe(3);
  });

  it('delivers what a webhook with a rate limit is offered: 5/s of 10/s, in 1.2 s each', async () => {
    const all: Entered[] = [];
    for (let passedMs = 0; passedMs < 30_000; passedMs += 200) {
      await harness.finish(startedBefore(all, 1_200));
      all.push(...(await harness.enter('a', 'first', 1, { rateLimitPerSecond: 10 })));
      await harness.pass(200);
    }
    expect(count(all)).toEqual({ started: 150, waiting: 0, slowLane: 0, deferred: 0 });
  });

  it('is not slow because the event loop was blocked', async () => {
    let stalledMs = 0;
    harness = createQueueHarness({ stalledMs: () => stalledMs });
    const all = await harness.enter('a', 'first', 16);
    harness.time.jump(3_000);
    stalledMs = 2_900;
    harness.queues.tick();
    await harness.finish(all);
    expect(count(await harness.enter('a', 'first', 16)).started).toBe(16);
  });
});

describe('an attempt that waits for its access token before its request', () => {
  it('makes its endpoint slow while it waits, and counts from when it begins again', async () => {
    const [waiting] = await harness.enter('a', 'first', 1);
    await harness.pass(1_100);
    expect(count(await harness.enter('a', 'first', 1)).slowLane).toBe(1);
    expect(waiting?.slot?.begin()).toBe(true);
    await harness.pass(10);
    await harness.finish([waiting].flatMap((each) => each ?? []));
    expect(count(await harness.enter('a', 'first', 3)).started).toBe(3);
  });

  it('does not keep others from being found slow', async () => {
    const [waiting] = await harness.enter('a', 'first', 1);
    await harness.pass(500);
    await harness.enter('b', 'first', 1);
    await harness.pass(300);
    waiting?.slot?.begin();
    await harness.pass(700);
    expect(count(await harness.enter('b', 'first', 1)).slowLane).toBe(1);
  });
});

describe('an attempt that got no token', () => {
  const WITHOUT_TOKEN = { outcome: 'token_failed', statusCode: null } as const;

  it('leaves its endpoint slow when that took a second, also after one that failed at once', async () => {
    await harness.finish(await slowDownOf('a'), WITHOUT_TOKEN);
    const tried = await harness.enter('a', 'first', 2);
    expect(count(tried)).toMatchObject({ started: 1, slowLane: 1 });
    await harness.finish(tried, WITHOUT_TOKEN);
    const next = await harness.enter('a', 'first', 2);
    expect(count(next)).toMatchObject({ started: 1, slowLane: 1 });
    await harness.finish(next);
    expect(count(await harness.enter('a', 'first', 2)).started).toBe(2);
  });

  it('does not make its endpoint slow when it failed at once, and says nothing else of it', async () => {
    await harness.finish(await harness.enter('a', 'first', 2), WITHOUT_TOKEN);
    expect(count(await harness.enter('a', 'first', 2)).started).toBe(2);
    await harness.finish(await slowDownOf('a'), WITHOUT_TOKEN);
    const [endpoint] = harness.queues.endpoints().values();
    expect(endpoint).toMatchObject({ quickestMs: 0, pausedUntilMs: 0, limit: { value: 16 } });
    expect(harness.holds).toEqual([]);
  });

  it('takes no slot from others again, however many webhooks have the silent token server', async () => {
    harness = createQueueHarness({ limits: { fast: 40 } });
    const silent = Array.from({ length: 20 }, (_, n) => `silent-${n}`);
    const enterSilent = async (): Promise<Entered[]> => {
      const all = await Promise.all(silent.map((id) => harness.enter(id, 'first', 16, COMPANY)));
      return all.flat();
    };
    const burst = await enterSilent();
    await harness.pass(15_000);
    await harness.finish(burst, WITHOUT_TOKEN);
    await harness.pass(15_000);
    await harness.finish(burst, WITHOUT_TOKEN);
    await enterSilent();
    expect(count(await harness.enter('healthy', 'first', 16)).started).toBe(16);
  });
});

/** Those that got their slots this long ago or earlier. */
const startedBefore = (all: readonly Entered[], agoMs: number): Entered[] =>
  all.filter(({ startedAtMs = Infinity }) => startedAtMs <= harness.time.nowMs() - agoMs);

/** One company for several webhooks. */
const COMPANY = { companyId: 'company of all' };

describe('slow endpoints together', () => {
  it('take at most a quarter of the slots', async () => {
    harness = createQueueHarness({ limits: { fast: 40 } });
    for (const id of ['a', 'b', 'c', 'd', 'e']) await harness.enter(id, 'first', 2);
    await harness.pass(1_100);
    expect(count(await harness.enter('a', 'first', 1)).slowLane).toBe(1);
    expect(count(await harness.enter('healthy', 'first', 16)).started).toBe(16);
  });

  it('move even their one attempt outside the slow lane there while the quarter is taken', async () => {
    harness = createQueueHarness({ limits: { fast: 40 } });
    await harness.finish(await slowDownOf('known'));
    const overdueFast = await Promise.all(
      Array.from({ length: 10 }, (_, n) => slowDownOf(`s${n}`)),
    );
    expect(count(await harness.enter('known', 'first', 1)).slowLane).toBe(1);
    await harness.finish(overdueFast.flat());
    expect(count(await harness.enter('known', 'first', 1)).started).toBe(1);
  });

  it('take no more when their webhooks have rate limits, from the start of their attempts on', async () => {
    harness = createQueueHarness({ limits: { fast: 40 } });
    const ids = Array.from({ length: 20 }, (_, n) => `limited-${n}`);
    for (const id of ids) await harness.finish(await slowDownOf(id));
    const as = { rateLimitPerSecond: 10_000 };
    const all = (await Promise.all(ids.map((id) => harness.enter(id, 'first', 16, as)))).flat();
    await harness.pass(100);
    expect(count(all)).toMatchObject({ started: 10, waiting: 0, deferred: 310 });
    expect(count(await harness.enter('healthy', 'first', 16)).started).toBe(16);
  });

  it('are not charged for attempts that hang in the slow lane', async () => {
    harness = createQueueHarness({ limits: { fast: 8 } });
    await harness.enter('a', 'slow', 16);
    await harness.pass(1_100);
    expect(count(await harness.enter('a', 'first', 1)).waiting).toBe(1);
    expect(count(await harness.enter('b', 'first', 8)).started).toBe(8);
  });
});

async function slowDownOf(id: string): Promise<Entered[]> {
  const all = await harness.enter(id, 'first', 1);
  await harness.pass(1_100);
  return all;
}

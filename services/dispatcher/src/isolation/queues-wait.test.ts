import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueHarness,
  type Entered,
  type QueueHarness,
  reservationsOf,
} from '../../../../test/support/isolation/queue-harness.ts';

let harness: QueueHarness;

beforeEach(() => {
  harness = createQueueHarness();
});

/**
 * The endpoint's quickest response takes this long: with 16 at once, a slot comes free each 16th of
 * it.
 */
async function respondIn(ms: number): Promise<void> {
  const one = await harness.enter('a', 'slow', 1);
  await harness.pass(ms);
  await harness.finish(one);
}

async function backlogOf(webhookIds: readonly string[], attempts: number): Promise<Entered[]> {
  const all = await Promise.all(
    webhookIds.map((webhookId) => harness.enter(webhookId, 'first', attempts)),
  );
  return all.flat();
}

/** Ends what has begun every half second, for 40 s: longer than an attempt may wait. */
async function serve(all: readonly Entered[]): Promise<void> {
  let left = [...all];
  for (let passedMs = 0; passedMs < 40_000; passedMs += 500) {
    await harness.pass(500);
    const begun = new Set(left.filter(({ slot }) => slot !== undefined));
    await harness.finish([...begun]);
    left = left.filter((each) => !begun.has(each));
  }
}

describe('an attempt that would wait for its endpoint', () => {
  it('is deferred at once when the expected wait is half a minute or longer', async () => {
    await respondIn(16_000);
    const all = await harness.enter('a', 'slow', 16 + 50);
    expect(count(all)).toMatchObject({ started: 16, waiting: 31, deferred: 19 });
  });

  it('gets a reservation behind all others, spaced as slots come free', async () => {
    await respondIn(16_000);
    const sinceMs = harness.time.nowMs();
    const reservations = reservationsOf(await harness.enter('a', 'slow', 16 + 34), sinceMs);
    expect(reservations).toEqual([32_000, 33_000, 34_000]);
  });

  it('is deferred after half a minute without a slot', async () => {
    await harness.enter('a', 'slow', 16);
    const early = await harness.enter('a', 'slow', 2);
    await harness.pass(10_000);
    const late = await harness.enter('a', 'slow', 2);
    await harness.pass(20_100);
    expect([count(early).deferred, count(late).waiting]).toEqual([2, 2]);
    expect(harness.queues.waiting()).toBe(2);
  });
});

describe('an attempt that waits for a slot of this dispatcher', () => {
  it('is never deferred, however long that takes', async () => {
    harness = createQueueHarness({ limits: { fast: 1, slow: 1 } });
    await harness.enter('a', 'first', 1);
    await harness.enter('a', 'slow', 1);
    const all = [
      ...(await harness.enter('b', 'first', 5)),
      ...(await harness.enter('b', 'retry', 5)),
      ...(await harness.enter('b', 'slow', 5)),
    ];
    harness.maxWait.ms = 1_000;
    await harness.pass(120_000);
    expect(count(all)).toMatchObject({ waiting: 15, deferred: 0, slowLane: 0 });
  });

  it('is not deferred behind many attempts of its endpoint', async () => {
    harness = createQueueHarness({ limits: { fast: 1 } });
    const running = await harness.enter('a', 'first', 1);
    const all = await harness.enter('b', 'first', 10_000);
    harness.maxWait.ms = 1_000;
    await harness.finish(running);
    expect(count(all)).toMatchObject({ started: 1, waiting: 9_999 });
  });
});

describe('a dispatcher whose memory runs short', () => {
  it('defers attempts that wait for their endpoint, and no others', async () => {
    harness = createQueueHarness({ limits: { fast: 20 } });
    harness.maxWait.ms = 1_000;
    const paced = await harness.enter('paced', 'first', 5, { rateLimitPerSecond: 1 });
    const healthy = await harness.enter('healthy', 'first', 15);
    const busy = await harness.enter('busy', 'first', 15);
    expect(count(paced)).toMatchObject({ started: 1, waiting: 1, deferred: 3 });
    expect(count(healthy)).toMatchObject({ started: 15 });
    expect(count(busy)).toMatchObject({ started: 4, waiting: 11 });
  });

  it('evicts the newest attempts of an endpoint that cannot take its load, and no others', async () => {
    harness = createQueueHarness({ limits: { fast: 20 } });
    const paced = await harness.enter('paced', 'first', 100, { rateLimitPerSecond: 10 });
    const busy = await harness.enter('busy', 'first', 50);
    harness.maxWait.ms = 1_000;
    await harness.pass(100);
    expect(count(paced)).toMatchObject({ started: 2, waiting: 15, deferred: 83 });
    expect(count(busy)).toMatchObject({ deferred: 0, slowLane: 0 });
  });

  it('evicts a bounded number at once', async () => {
    const paced = await harness.enter('paced', 'first', 290, { rateLimitPerSecond: 10 });
    harness.maxWait.ms = 1_000;
    await harness.pass(100);
    expect(count(paced).deferred).toBe(250);
    await harness.pass(100);
    expect(count(paced).deferred).toBeGreaterThan(250);
  });

  it('defers new attempts during a pause that is too long, and keeps those that wait', async () => {
    const one = await harness.enter('a', 'first', 1);
    await harness.finish(one, { outcome: 'http_429', statusCode: 429, retryAfterMs: 20_000 });
    const waiting = await harness.enter('a', 'first', 1);
    harness.maxWait.ms = 5_000;
    const late = await harness.enter('a', 'first', 1);
    expect([count(waiting).waiting, count(late).deferred]).toEqual([1, 1]);
  });
});

describe('what is known about endpoints', () => {
  const ids = (): string[] => [...harness.queues.endpoints().keys()];

  it('is forgotten a minute after their last attempt', async () => {
    await harness.finish(await harness.enter('a', 'first', 3));
    await harness.pass(59_000);
    expect(ids()).toEqual(['a']);
    await harness.pass(1_000);
    expect([ids(), harness.queues.endpoints().size]).toEqual([[], 0]);
  });

  it('is kept while anything is under way or waits, and while a pause lasts', async () => {
    const held = await harness.enter('held', 'first', 1);
    await harness.finish(held, { outcome: 'http_429', statusCode: 429, retryAfterMs: 150_000 });
    await harness.enter('runs', 'first', 1);
    await harness.pass(120_000);
    expect(ids()).toEqual(['held', 'runs']);
    await harness.pass(30_000);
    expect(ids()).toEqual(['runs']);
  });

  it('is kept while an attempt waits for a slot of this dispatcher', async () => {
    harness = createQueueHarness({ limits: { fast: 1 } });
    const [one] = await harness.enter('a', 'first', 1);
    const waiting: Entered[] = await harness.enter('waits', 'first', 1);
    await harness.pass(120_000);
    await harness.finish(one ? [one] : []);
    expect(count(waiting).started).toBe(1);
  });
});

describe('an overloaded dispatcher', () => {
  /** Four slots at each endpoint, ten of the dispatcher; memory is full and this process has no CPU time left. */
  beforeEach(() => {
    const perEndpoint = { floor: 4, start: 4, ceiling: 4 };
    harness = createQueueHarness({ limits: { perEndpoint, fast: 10 } });
    harness.overload.is = true;
  });

  it('keeps the backlog that all endpoints have, however long it is', async () => {
    const all = await backlogOf(['a', 'b'], 1_000);
    harness.maxWait.ms = 1_000;
    await serve(all);
    expect(count(all)).toMatchObject({ deferred: 0, slowLane: 0 });
  });

  it('defers the backlog of one endpoint that is far longer than those of others', async () => {
    const many = await backlogOf(['a'], 1_000);
    const others = await backlogOf(['b', 'c', 'd'], 10);
    harness.maxWait.ms = 1_000;
    await serve([...many, ...others]);
    expect(count(many).deferred).toBeGreaterThan(500);
    expect(count(others).deferred).toBe(0);
  });

  it('defers it as usual once it has CPU time again', async () => {
    const all = await backlogOf(['a', 'b'], 1_000);
    harness.maxWait.ms = 1_000;
    harness.overload.is = false;
    await serve(all);
    expect(count(all).deferred).toBeGreaterThan(1_000);
  });
});

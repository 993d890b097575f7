import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueBench,
  turnsOf,
  type Entered,
  type QueueBench,
} from '../../../../../test/support/isolation/queue-bench.ts';

let bench: QueueBench;

beforeEach(() => {
  bench = createQueueBench();
});

/** The endpoint's quickest answer of late takes so long: with 16 at once a place comes each 16th of it. */
async function answerIn(ms: number): Promise<void> {
  const one = await bench.enter('a', 'slow', 1);
  await bench.pass(ms);
  await bench.finish(one);
}

describe('an attempt that would wait for its endpoint', () => {
  it('for half a minute or longer is deferred at once, as far as one can tell', async () => {
    await answerIn(16_000);
    const all = await bench.enter('a', 'slow', 16 + 50);
    expect(count(all)).toMatchObject({ turns: 16, waiting: 31, deferred: 19 });
  });

  it('is given a turn behind all others, one for each place that comes free', async () => {
    await answerIn(16_000);
    const sinceMs = bench.time.nowMs();
    const turns = turnsOf(await bench.enter('a', 'slow', 16 + 34), sinceMs);
    expect(turns).toEqual([32_000, 33_000, 34_000]);
  });

  it('is deferred after half a minute when its place did not come', async () => {
    await bench.enter('a', 'slow', 16);
    const early = await bench.enter('a', 'slow', 2);
    await bench.pass(10_000);
    const late = await bench.enter('a', 'slow', 2);
    await bench.pass(20_100);
    expect([count(early).deferred, count(late).waiting]).toEqual([2, 2]);
    expect(bench.queues.waiting()).toBe(2);
  });
});

describe('an attempt that waits for a place of this dispatcher', () => {
  it('is never deferred, however long that takes', async () => {
    bench = createQueueBench({ limits: { fast: 1, slow: 1 } });
    await bench.enter('a', 'first', 1);
    await bench.enter('a', 'slow', 1);
    const all = [
      ...(await bench.enter('b', 'first', 5)),
      ...(await bench.enter('b', 'retry', 5)),
      ...(await bench.enter('b', 'slow', 5)),
    ];
    bench.maxWait.ms = 1_000;
    await bench.pass(120_000);
    expect(count(all)).toMatchObject({ waiting: 15, deferred: 0, slowLane: 0 });
  });

  it('is not deferred either when it waits behind many of its endpoint', async () => {
    bench = createQueueBench({ limits: { fast: 1 } });
    const running = await bench.enter('a', 'first', 1);
    const all = await bench.enter('b', 'first', 10_000);
    bench.maxWait.ms = 1_000;
    await bench.finish(running);
    expect(count(all)).toMatchObject({ turns: 1, waiting: 9_999 });
  });
});

describe('a dispatcher whose memory runs short', () => {
  it('defers what its endpoint would keep waiting, and nothing else', async () => {
    bench = createQueueBench({ limits: { fast: 20 } });
    bench.maxWait.ms = 1_000;
    const paced = await bench.enter('paced', 'first', 5, { rateLimitPerSecond: 1 });
    const well = await bench.enter('well', 'first', 15);
    const busy = await bench.enter('busy', 'first', 15);
    expect(count(paced)).toMatchObject({ turns: 1, waiting: 1, deferred: 3 });
    expect(count(well)).toMatchObject({ turns: 15 });
    expect(count(busy)).toMatchObject({ turns: 4, waiting: 11 });
  });

  it('sends away who came last to an endpoint that cannot take its load, and keeps all others', async () => {
    bench = createQueueBench({ limits: { fast: 20 } });
    const paced = await bench.enter('paced', 'first', 100, { rateLimitPerSecond: 10 });
    const busy = await bench.enter('busy', 'first', 50);
    bench.maxWait.ms = 1_000;
    await bench.pass(100);
    expect(count(paced)).toMatchObject({ turns: 2, waiting: 15, deferred: 83 });
    expect(count(busy)).toMatchObject({ deferred: 0, slowLane: 0 });
  });

  it('sends away no more at once than leaves meanwhile', async () => {
    const paced = await bench.enter('paced', 'first', 290, { rateLimitPerSecond: 10 });
    bench.maxWait.ms = 1_000;
    await bench.pass(100);
    expect(count(paced).deferred).toBe(250);
    await bench.pass(100);
    expect(count(paced).deferred).toBeGreaterThan(250);
  });

  it('defers who comes in a pause that is longer than the memory lasts, and keeps who waits', async () => {
    const one = await bench.enter('a', 'first', 1);
    await bench.finish(one, { outcome: 'http_429', statusCode: 429, retryAfterMs: 20_000 });
    const waiting = await bench.enter('a', 'first', 1);
    bench.maxWait.ms = 5_000;
    const late = await bench.enter('a', 'first', 1);
    expect([count(waiting).waiting, count(late).deferred]).toEqual([1, 1]);
  });
});

describe('what is known of endpoints', () => {
  const ids = (): string[] => [...bench.queues.endpoints()].map(({ webhookId }) => webhookId);

  it('is forgotten a minute after their last attempt', async () => {
    await bench.finish(await bench.enter('a', 'first', 3));
    await bench.pass(59_000);
    expect(ids()).toEqual(['a']);
    await bench.pass(1_000);
    expect([ids(), bench.queues.size()]).toEqual([[], 0]);
  });

  it('is kept while anything is under way or waits, and while a pause lasts', async () => {
    const held = await bench.enter('held', 'first', 1);
    await bench.finish(held, { outcome: 'http_429', statusCode: 429, retryAfterMs: 150_000 });
    await bench.enter('runs', 'first', 1);
    await bench.pass(120_000);
    expect(ids()).toEqual(['held', 'runs']);
    await bench.pass(30_000);
    expect(ids()).toEqual(['runs']);
  });

  it('is kept when an attempt of it waits for a place of ours', async () => {
    bench = createQueueBench({ limits: { fast: 1 } });
    const [one] = await bench.enter('a', 'first', 1);
    const waiting: Entered[] = await bench.enter('waits', 'first', 1);
    await bench.pass(120_000);
    await bench.finish(one ? [one] : []);
    expect(count(waiting).turns).toBe(1);
  });
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueBench,
  type Entered,
  type QueueBench,
} from '../../../../../test/support/isolation/queue-bench.ts';

let bench: QueueBench;

beforeEach(() => {
  bench = createQueueBench();
});

async function slowDown(): Promise<Entered[]> {
  const all = await bench.enter('a', 'first', 40);
  await bench.pass(1_100);
  return all;
}

describe('an endpoint that keeps an attempt for a second', () => {
  it('sends whoever waits in its fast queues to the slow lane, and whoever comes', async () => {
    expect(count(await slowDown())).toMatchObject({ turns: 16, slowLane: 24 });
    expect(count(await bench.enter('a', 'first', 5)).slowLane).toBe(5);
    expect(count(await bench.enter('a', 'retry', 5)).slowLane).toBe(5);
    expect(count(await bench.enter('b', 'first', 5)).turns).toBe(5);
  });

  it('still lets its slow lane wait for a place', async () => {
    await slowDown();
    expect(count(await bench.enter('a', 'slow', 300)).waiting).toBe(300);
  });

  it('has one fast attempt at a time until one shows that it is well again', async () => {
    await bench.finish(await slowDown());
    const tried = await bench.enter('a', 'first', 3);
    expect(count(tried)).toMatchObject({ turns: 1, slowLane: 2 });
    await bench.pass(10);
    await bench.finish(tried);
    expect(count(await bench.enter('a', 'first', 3)).turns).toBe(3);
  });

  it('is forgiven after a minute without traffic', async () => {
    await bench.finish(await slowDown());
    await bench.pass(59_000);
    expect(count(await bench.enter('a', 'retry', 2)).slowLane).toBe(1);
    bench = createQueueBench();
    await bench.finish(await slowDown());
    await bench.pass(60_000);
    expect(count(await bench.enter('a', 'first', 3)).turns).toBe(3);
  });

  it('defers what has a rate limit: two lanes could not keep one rate', async () => {
    const [first, second] = await bench.enter('a', 'first', 2, { rateLimitPerSecond: 1 });
    await bench.pass(1_100);
    expect(first?.admission?.kind).toBe('turn');
    const [third] = await bench.enter('a', 'first', 1, { rateLimitPerSecond: 1 });
    expect([second?.admission?.kind, third?.admission]).toEqual([
      'turn',
      expect.objectContaining({ kind: 'defer', because: 'slow' }),
    ]);
  });

  it('is not slow because this process stood still', async () => {
    let stoodStillMs = 0;
    bench = createQueueBench({ stoodStillMs: () => stoodStillMs });
    const all = await bench.enter('a', 'first', 16);
    bench.time.jump(3_000);
    stoodStillMs = 2_900;
    bench.queues.tick();
    await bench.finish(all);
    expect(count(await bench.enter('a', 'first', 16)).turns).toBe(16);
  });
});

describe('slow endpoints together', () => {
  it('cannot take more than a quarter of the places', async () => {
    bench = createQueueBench({ limits: { fast: 40 } });
    for (const id of ['a', 'b', 'c', 'd', 'e']) await bench.enter(id, 'first', 2);
    await bench.pass(1_100);
    expect(count(await bench.enter('a', 'first', 1)).slowLane).toBe(1);
    expect(count(await bench.enter('well', 'first', 16)).turns).toBe(16);
  });

  it('send also the one fast attempt of each to the slow lane while the quarter is taken', async () => {
    bench = createQueueBench({ limits: { fast: 40 } });
    await bench.finish(await slowDownOf('known'));
    const stuck = await Promise.all(Array.from({ length: 10 }, (_, n) => slowDownOf(`s${n}`)));
    expect(count(await bench.enter('known', 'first', 1)).slowLane).toBe(1);
    await bench.finish(stuck.flat());
    expect(count(await bench.enter('known', 'first', 1)).turns).toBe(1);
  });

  it('do not count what hangs in the slow lane', async () => {
    bench = createQueueBench({ limits: { fast: 8 } });
    await bench.enter('a', 'slow', 16);
    await bench.pass(1_100);
    expect(count(await bench.enter('a', 'first', 1)).waiting).toBe(1);
    expect(count(await bench.enter('b', 'first', 8)).turns).toBe(8);
  });
});

async function slowDownOf(id: string): Promise<Entered[]> {
  const all = await bench.enter(id, 'first', 1);
  await bench.pass(1_100);
  return all;
}

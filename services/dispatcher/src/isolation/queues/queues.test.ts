import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueBench,
  type QueueBench,
} from '../../../../../test/support/isolation/queue-bench.ts';

let bench: QueueBench;

beforeEach(() => {
  bench = createQueueBench();
});

describe('an endpoint', () => {
  it('has sixteen attempts under way, and all others wait', async () => {
    const all = await bench.enter('a', 'first', 100);
    expect(count(all)).toMatchObject({ turns: 16, waiting: 84 });
    expect([bench.queues.running(), bench.queues.waiting()]).toEqual([16, 84]);
  });

  it('gives a place that comes free to who has waited longest', async () => {
    const all = await bench.enter('a', 'first', 18);
    await bench.finish(all.slice(0, 1));
    expect(count(all.slice(16, 17)).turns).toBe(1);
    expect(count(all.slice(17)).waiting).toBe(1);
  });

  it('frees a place once, however often its attempt is ended', async () => {
    const all = await bench.enter('a', 'first', 20);
    await bench.finish(all.slice(0, 1));
    await bench.finish(all.slice(0, 1));
    expect(count(all).turns).toBe(17);
    expect(bench.queues.running()).toBe(16);
  });

  it('keeps half of its places for first attempts, however many retries come', async () => {
    expect(count(await bench.enter('a', 'retry', 100))).toMatchObject({ turns: 8, waiting: 92 });
    expect(count(await bench.enter('a', 'first', 100))).toMatchObject({ turns: 8, waiting: 92 });
  });

  it('holds its bound over all lanes together', async () => {
    expect(count(await bench.enter('a', 'slow', 16)).turns).toBe(16);
    expect(count(await bench.enter('a', 'first', 5)).waiting).toBe(5);
    expect(bench.queues.running()).toBe(16);
  });

  it('lets what came over the slow lane have a quarter while first attempts keep coming', async () => {
    const first = await bench.enter('a', 'first', 16);
    const slow = await bench.enter('a', 'slow', 10);
    const later = await bench.enter('a', 'first', 50);
    for (const each of first) await bench.finish([each]);
    expect(count(slow).turns).toBe(4);
    expect(count(later).turns).toBe(12);
  });

  it('gives its first attempts the quarter back as soon as no slow one waits for it', async () => {
    bench = createQueueBench({ limits: { slow: 1 } });
    const [elsewhere] = await Promise.all([
      bench.enter('b', 'slow', 1),
      bench.enter('a', 'first', 12),
    ]);
    const slow = await bench.enter('a', 'slow', 1);
    const first = await bench.enter('a', 'first', 1);
    expect([count(slow).waiting, count(first).waiting]).toEqual([1, 1]);
    await bench.finish(elsewhere);
    expect([count(slow).turns, count(first).turns]).toEqual([1, 1]);
  });
});

describe('an attempt that waits', () => {
  it('keeps its payload when its turn is near, and gives it up when it is not', async () => {
    const [, near, far] = await bench.enter('a', 'first', 3, { rateLimitPerSecond: 1 });
    expect([near?.isPayloadDropped, far?.isPayloadDropped]).toEqual([false, true]);
  });

  it('is not kept from a place by one whose turn came to nothing', async () => {
    bench = createQueueBench({ begins: false, limits: { fast: 1 } });
    const [unmade, next] = await bench.enter('a', 'first', 2);
    expect(bench.queues.running()).toBe(0);
    await bench.finish(unmade ? [unmade] : [], null);
    expect(next?.turn?.begin()).toBe(true);
    expect(bench.queues.running()).toBe(1);
    expect(bench.permits()).toBe(1);
  });
});

describe('the dispatcher', () => {
  it('is full when all places are taken and half as many attempts wait', async () => {
    bench = createQueueBench({ limits: { fast: 10 } });
    const all = await bench.enter('a', 'first', 14);
    expect(bench.queues.isFull()).toBe(false);
    await bench.enter('b', 'first', 1);
    expect(bench.queues.isFull()).toBe(true);
    await bench.finish(all.slice(0, 1));
    expect(bench.queues.isFull()).toBe(false);
  });

  it('has a slow lane with places of its own', async () => {
    bench = createQueueBench({ limits: { fast: 5, slow: 5 } });
    await bench.enter('a', 'slow', 16);
    expect(count(await bench.enter('b', 'first', 5)).turns).toBe(5);
  });
});

describe('a stop', () => {
  it('sends away whoever waits and lets nobody wait any more', async () => {
    const first = await bench.enter('a', 'first', 20);
    const paced = await bench.enter('b', 'first', 5, { rateLimitPerSecond: 1 });
    const slow = await bench.enter('c', 'slow', 20);
    bench.queues.close();
    await bench.pass(0);
    expect(count(first)).toMatchObject({ turns: 16, slowLane: 4 });
    expect(count(paced)).toMatchObject({ turns: 1, deferred: 4 });
    expect(count(slow)).toMatchObject({ turns: 16, deferred: 4 });
    expect(count(await bench.enter('a', 'first', 1)).slowLane).toBe(1);
    expect(count(await bench.enter('c', 'slow', 1)).deferred).toBe(1);
    expect(bench.queues.waiting()).toBe(0);
  });

  it('leaves no timer behind', async () => {
    await bench.enter('a', 'first', 5, { rateLimitPerSecond: 1 });
    expect(bench.time.size()).toBe(1);
    bench.queues.close();
    expect(bench.time.size()).toBe(0);
  });

  it('lets what is under way come to its end', async () => {
    const all = await bench.enter('a', 'first', 2);
    bench.queues.close();
    await bench.finish(all);
    expect([bench.queues.running(), bench.permits()]).toEqual([0, 0]);
  });
});

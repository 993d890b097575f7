import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueHarness,
  type QueueHarness,
} from '../../../../test/support/isolation/queue-harness.ts';

let harness: QueueHarness;

beforeEach(() => {
  harness = createQueueHarness();
});

describe('an endpoint', () => {
  it('has sixteen attempts under way while all others wait', async () => {
    const all = await harness.enter('a', 'first', 100);
    expect(count(all)).toMatchObject({ started: 16, waiting: 84 });
    expect([harness.queues.running(), harness.queues.waiting()]).toEqual([16, 84]);
  });

  it('gives a free slot to the attempt that has waited longest', async () => {
    const all = await harness.enter('a', 'first', 18);
    await harness.finish(all.slice(0, 1));
    expect(count(all.slice(16, 17)).started).toBe(1);
    expect(count(all.slice(17)).waiting).toBe(1);
  });

  it('frees a slot once, however often it is ended', async () => {
    const all = await harness.enter('a', 'first', 20);
    await harness.finish(all.slice(0, 1));
    await harness.finish(all.slice(0, 1));
    expect(count(all).started).toBe(17);
    expect(harness.queues.running()).toBe(16);
  });

  it('gives attempts from the slow lane a quarter of its slots while first attempts keep coming', async () => {
    const first = await harness.enter('a', 'first', 16);
    const slow = await harness.enter('a', 'slow', 10);
    const later = await harness.enter('a', 'first', 50);
    for (const each of first) await harness.finish([each]);
    expect(count(slow).started).toBe(4);
    expect(count(later).started).toBe(12);
  });

  it('gives the quarter back to first attempts as soon as no slow attempt waits', async () => {
    harness = createQueueHarness({ limits: { slow: 1 } });
    const [elsewhere] = await Promise.all([
      harness.enter('b', 'slow', 1),
      harness.enter('a', 'first', 12),
    ]);
    const slow = await harness.enter('a', 'slow', 1);
    const first = await harness.enter('a', 'first', 1);
    expect([count(slow).waiting, count(first).waiting]).toEqual([1, 1]);
    await harness.finish(elsewhere);
    expect([count(slow).started, count(first).started]).toEqual([1, 1]);
  });
});

describe('an attempt that waits', () => {
  it('keeps its payload when the wait is short, and drops it when it is long', async () => {
    const [, near, far] = await harness.enter('a', 'first', 3, { rateLimitPerSecond: 1 });
    expect([near?.isPayloadDropped, far?.isPayloadDropped]).toEqual([false, true]);
  });

  it('gets the slot of an attempt that was not made after all', async () => {
    harness = createQueueHarness({ begins: false, limits: { fast: 1 } });
    const [unmade, next] = await harness.enter('a', 'first', 2);
    expect(harness.queues.running()).toBe(0);
    await harness.finish(unmade ? [unmade] : [], null);
    expect(next?.slot?.begin()).toBe(true);
    expect(harness.queues.running()).toBe(1);
    expect(harness.unreported()).toBe(1);
  });
});

describe('the dispatcher', () => {
  it('is full when all slots are taken and half as many attempts wait', async () => {
    harness = createQueueHarness({ limits: { fast: 10 } });
    const all = await harness.enter('a', 'first', 14);
    expect(harness.queues.isFull('fast')).toBe(false);
    await harness.enter('b', 'first', 1);
    expect(harness.queues.isFull('fast')).toBe(true);
    await harness.finish(all.slice(0, 1));
    expect(harness.queues.isFull('fast')).toBe(false);
  });

  it('has a full slow lane when its slots are taken, and not when one endpoint is waited for', async () => {
    harness = createQueueHarness({ limits: { slow: 20 } });
    await harness.enter('a', 'slow', 40);
    expect(harness.queues.isFull('slow')).toBe(false);
    await harness.enter('b', 'slow', 4);
    expect([harness.queues.isFull('slow'), harness.queues.isFull('fast')]).toEqual([true, false]);
  });

  it('has a slow lane with slots of its own', async () => {
    harness = createQueueHarness({ limits: { fast: 5, slow: 5 } });
    await harness.enter('a', 'slow', 16);
    expect(count(await harness.enter('b', 'first', 5)).started).toBe(5);
  });
});

describe('a stop', () => {
  it('evicts every waiting attempt and lets none wait any more', async () => {
    const first = await harness.enter('a', 'first', 20);
    const paced = await harness.enter('b', 'first', 5, { rateLimitPerSecond: 1 });
    const slow = await harness.enter('c', 'slow', 20);
    harness.queues.close();
    await harness.pass(0);
    expect(count(first)).toMatchObject({ started: 16, slowLane: 4 });
    expect(count(paced)).toMatchObject({ started: 1, deferred: 4 });
    expect(count(slow)).toMatchObject({ started: 16, deferred: 4 });
    expect(count(await harness.enter('a', 'first', 1)).slowLane).toBe(1);
    expect(count(await harness.enter('c', 'slow', 1)).deferred).toBe(1);
    expect(harness.queues.waiting()).toBe(0);
  });

  it('leaves no timer behind', async () => {
    await harness.enter('a', 'first', 5, { rateLimitPerSecond: 1 });
    expect(harness.time.size()).toBe(1);
    harness.queues.close();
    expect(harness.time.size()).toBe(0);
  });

  it('lets attempts under way end', async () => {
    const all = await harness.enter('a', 'first', 2);
    harness.queues.close();
    await harness.finish(all);
    expect([harness.queues.running(), harness.unreported()]).toEqual([0, 0]);
  });
});

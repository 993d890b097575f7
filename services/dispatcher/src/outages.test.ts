import { beforeEach, describe, expect, it, test } from '@jest/globals';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import {
  createOutageFreeClock,
  createOutageWatch,
  createOverloadWatch,
  createStallFreeClock,
  type OutageFreeClock,
  type OutageWatch,
  type StallFreeClock,
} from './outages.ts';

describe('watch outages', () => {
  let registry: Registry;
  let watch: OutageWatch;
  let keepTrying: KeepTrying;

  /** Tries once. */
  const once: KeepTrying = (_purpose, step) => step();

  beforeEach(() => {
    registry = new Registry();
    watch = createOutageWatch(registry);
    keepTrying = watch.watch(once);
  });

  const succeed = (purpose: string): Promise<unknown> =>
    keepTrying(purpose, () => Promise.resolve());
  const fail = (purpose: string, error: Error): Promise<unknown> =>
    keepTrying(purpose, () => Promise.reject(error)).catch(() => undefined);
  const noMajority = new Error('waiting for replication timed out');

  test('there is an outage from the first failure of a step to its next success', async () => {
    await succeed('record outcomes');
    expect(watch.isOutage()).toBe(false);
    await fail('record outcomes', noMajority);
    expect(watch.isOutage()).toBe(true);
    await succeed('look up recorded attempts');
    expect(watch.isOutage()).toBe(true);
    await succeed('record outcomes');
    expect(watch.isOutage()).toBe(false);
  });

  test('a fault of the program is no outage', async () => {
    await fail('record outcomes', new TypeError('undefined is no function'));
    expect(watch.isOutage()).toBe(false);
  });

  test('the metrics name the steps that fail', async () => {
    await fail('record outcomes', noMajority);
    await succeed('look up webhooks');
    const { values } = (await registry.getSingleMetric('posthorn_failing_steps')?.get()) ?? {};
    expect(values?.map(({ labels, value }) => [labels.step, value])).toEqual([
      ['record outcomes', 1],
      ['look up webhooks', 0],
    ]);
  });
});

describe('outage free clock', () => {
  let clockMs: number;
  let areStoresUp: boolean;
  let time: OutageFreeClock;

  beforeEach(() => {
    [clockMs, areStoresUp] = [500, true];
    time = createOutageFreeClock({ areStoresUp: () => areStoresUp, monotonicMs: () => clockMs });
  });

  function tickAfter(ms: number): void {
    clockMs += ms;
    time.tick();
  }

  test('the time in which the stores answer counts, and no other', () => {
    tickAfter(50);
    areStoresUp = false;
    tickAfter(50);
    tickAfter(50);
    areStoresUp = true;
    tickAfter(50);
    expect(time.countedMs()).toBe(100);
  });

  test('the time in which the process slept counts as a second', () => {
    tickAfter(3_600_000);
    expect(time.countedMs()).toBe(1_000);
  });
});

describe('stall free clock', () => {
  const EVERY_MS = 100;

  let monotonicMs: number;
  let clock: StallFreeClock;

  beforeEach(() => {
    monotonicMs = 5_000;
    clock = createStallFreeClock(EVERY_MS, () => monotonicMs);
  });

  function tickAfter(ms: number): void {
    monotonicMs += ms;
    clock.tick();
  }

  describe('the stall-free clock', () => {
    it('counts all time while the timer is on time', () => {
      for (let n = 0; n < 10; n += 1) tickAfter(100);
      expect(clock.nowMs()).toBe(6_000);
    });

    it('counts the time of a rest, which is no stall', () => {
      monotonicMs += 60_000;
      clock.resume();
      tickAfter(100);
      expect(clock.nowMs()).toBe(65_100);
    });

    it('tolerates a timer that is a millisecond or two late', () => {
      for (let n = 0; n < 10; n += 1) tickAfter(102);
      expect(clock.nowMs()).toBe(5_000 + 10 * 102);
    });

    it('leaves out a stall, from the first reading after it on', () => {
      monotonicMs += 3_000;
      expect(clock.nowMs()).toBe(5_000 + 100 + 2);
      clock.tick();
      expect(clock.nowMs()).toBe(5_102);
      tickAfter(100);
      expect(clock.nowMs()).toBe(5_202);
    });

    it('never runs backwards, and never faster than time does', () => {
      const step = fc.record({ ms: fc.integer({ min: 0, max: 2_000 }), ticks: fc.boolean() });
      fc.assert(
        fc.property(fc.array(step), (steps) => {
          const busy = createStallFreeClock(EVERY_MS, () => monotonicMs);
          for (const { ms, ticks } of steps) {
            const before = busy.nowMs();
            monotonicMs += ms;
            if (ticks) busy.tick();
            const passedMs = busy.nowMs() - before;
            expect(passedMs).toBeGreaterThanOrEqual(0);
            expect(passedMs).toBeLessThanOrEqual(ms);
          }
        }),
      );
    });
  });
});

test('a process counts as overloaded while its event loop is busy, and for two seconds after', () => {
  let nowMs = 0;
  const watch = createOverloadWatch(() => nowMs);
  watch.tick(0.89);
  expect(watch.isOverloaded()).toBe(false);
  watch.tick(0.9);
  expect(watch.isOverloaded()).toBe(true);
  nowMs += 1_999;
  watch.tick(0.2);
  expect(watch.isOverloaded()).toBe(true);
  nowMs += 1;
  expect(watch.isOverloaded()).toBe(false);
});

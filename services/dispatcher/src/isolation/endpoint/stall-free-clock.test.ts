import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createStallFreeClock, type StallFreeClock } from './stall-free-clock.ts';

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

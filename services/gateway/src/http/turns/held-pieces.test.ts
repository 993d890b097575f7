import { describe, expect, test } from '@jest/globals';
import { createHeldPieces } from './held-pieces.ts';

function setUp() {
  const rests = new Map<string, number>();
  const timers: { ms: number; run: () => void }[] = [];
  const released: string[] = [];
  const held = createHeldPieces<string>({
    restMs: (companyId) => rests.get(companyId) ?? 0,
    after: (ms, run) => void timers.push({ ms, run }),
    monotonicMs: () => 0,
    release: (piece) => void released.push(piece),
  });
  const passTimer = (): number => {
    const timer = timers.shift();
    timer?.run();
    return timer?.ms ?? -1;
  };
  return { rests, timers, released, held, passTimer };
}

describe('pieces of work', () => {
  test('of a company that may work are not held', () => {
    const { held, timers } = setUp();
    expect(held.tryHold('comp_a', 'a1')).toBe(false);
    expect([held.size(), timers]).toEqual([0, []]);
  });

  test('are released one at a time, in order, each after the rest of its company', () => {
    const { held, rests, released, passTimer } = setUp();
    rests.set('comp_a', 7.2);
    for (const piece of ['a1', 'a2']) expect(held.tryHold('comp_a', piece)).toBe(true);
    rests.set('comp_a', 0);
    expect(held.tryHold('comp_a', 'a3')).toBe(true);
    expect(passTimer()).toBe(8);
    expect(released).toEqual(['a1']);
    rests.set('comp_a', 30);
    passTimer();
    expect(released).toEqual(['a1']);
    rests.set('comp_a', 0);
    passTimer();
    passTimer();
    expect([released, held.size()]).toEqual([['a1', 'a2', 'a3'], 0]);
  });

  test('do not wait for a company that was held before and rests longer', () => {
    const { held, rests, released, timers } = setUp();
    rests.set('comp_a', 2_000);
    held.tryHold('comp_a', 'a1');
    rests.set('comp_b', 10);
    held.tryHold('comp_b', 'b1');
    expect(timers.map(({ ms }) => ms)).toEqual([2_000, 10]);
    rests.set('comp_b', 0);
    timers[1]?.run();
    expect(released).toEqual(['b1']);
  });

  test('wait for the company that has rested first, with one timer', () => {
    const { held, rests, released, timers, passTimer } = setUp();
    rests.set('comp_a', 50);
    rests.set('comp_b', 20);
    held.tryHold('comp_b', 'b1');
    held.tryHold('comp_a', 'a1');
    expect(timers).toHaveLength(1);
    rests.set('comp_b', 0);
    passTimer();
    expect(released).toEqual(['b1']);
    expect(timers.map(({ ms }) => ms)).toEqual([50]);
  });
});

import { describe, expect, test } from '@jest/globals';
import { createHeldPieces } from './held-pieces.ts';

function setUp() {
  const rests = new Map<string, number>();
  const timers: { ms: number; run: () => void }[] = [];
  const released: string[] = [];
  let asked = 0;
  const held = createHeldPieces<string>({
    restMs(companyId) {
      asked += 1;
      return rests.get(companyId) ?? 0;
    },
    after: (ms, run) => void timers.push({ ms, run }),
    release: (piece) => void released.push(piece),
  });
  const passTimer = (): number => {
    const timer = timers.shift();
    timer?.run();
    return timer?.ms ?? -1;
  };
  return { rests, timers, released, held, passTimer, asked: () => asked };
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

  test('wait for their own company, whichever has rested first', () => {
    const { held, rests, released, timers } = setUp();
    rests.set('comp_a', 50);
    rests.set('comp_b', 20);
    for (const piece of ['b1', 'b2']) held.tryHold('comp_b', piece);
    held.tryHold('comp_a', 'a1');
    expect(timers.map(({ ms }) => ms)).toEqual([20, 50]);
    rests.set('comp_b', 0);
    timers[0]?.run();
    expect(released).toEqual(['b1']);
    expect(timers.map(({ ms }) => ms)).toEqual([20, 50, 1]);
  });

  test('are held without a look at the other companies that rest', () => {
    const { held, rests, asked } = setUp();
    for (let n = 0; n < 1_000; n += 1) {
      rests.set(`comp_${n}`, 5);
      held.tryHold(`comp_${n}`, 'piece');
    }
    expect([held.size(), asked()]).toEqual([1_000, 2_000]);
  });
});

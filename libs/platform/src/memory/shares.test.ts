import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createShares, type Shares } from './shares.ts';

/** Adds one at a time in turn until nobody has room. */
function fill(shares: Shares, keys: readonly string[]): void {
  for (let isAdding = true; isAdding;) {
    isAdding = false;
    for (const key of keys) {
      if (!shares.hasRoom(key, 1)) continue;
      shares.add(key, 1);
      isAdding = true;
    }
  }
}

describe('keys that share a budget', () => {
  test('hold half of it when there is one, a third each when there are two', () => {
    const alone = createShares(60);
    fill(alone, ['a']);
    expect(alone.heldBy('a')).toBe(30);
    const two = createShares(60);
    fill(two, ['a', 'b']);
    expect([two.heldBy('a'), two.heldBy('b')]).toEqual([20, 20]);
  });

  test('leave room for one that comes later', () => {
    const shares = createShares(60);
    fill(shares, ['a']);
    expect([shares.hasRoom('a', 1), shares.hasRoom('b', 15)]).toEqual([false, true]);
  });

  test('have room again when something is given back', () => {
    const shares = createShares(60);
    fill(shares, ['a']);
    shares.remove('a', 30);
    expect([shares.used(), shares.heldBy('a'), shares.hasRoom('a', 30)]).toEqual([0, 0, true]);
  });

  test('count what is added without room', () => {
    const shares = createShares(10);
    shares.add('a', 100);
    expect([shares.used(), shares.hasRoom('b', 0)]).toEqual([100, false]);
  });

  test('never hold more than the budget, whatever is asked for', () => {
    const asked = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(30)));
    fc.assert(
      fc.property(asked, fc.nat(100), (all, budget) => {
        const shares = createShares(budget);
        for (const [key, amount] of all) if (shares.hasRoom(key, amount)) shares.add(key, amount);
        expect(shares.used()).toBeLessThanOrEqual(budget);
      }),
    );
  });
});

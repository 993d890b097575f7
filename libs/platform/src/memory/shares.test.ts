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
  test('get half of it when there is one, and a third each when there are two', () => {
    const alone = createShares(60);
    fill(alone, ['a']);
    expect(alone.heldBy('a')).toBe(30);
    const two = createShares(60);
    fill(two, ['a', 'b']);
    expect([two.heldBy('a'), two.heldBy('b')]).toEqual([20, 20]);
  });

  test('leave room for a later key', () => {
    const shares = createShares(60);
    fill(shares, ['a']);
    expect([shares.hasRoom('a', 1), shares.hasRoom('b', 15)]).toEqual([false, true]);
  });

  test('have room again after an amount is removed', () => {
    const shares = createShares(60);
    fill(shares, ['a']);
    shares.remove('a', 30);
    expect([shares.used(), shares.heldBy('a'), shares.hasRoom('a', 30)]).toEqual([0, 0, true]);
  });

  test('count amounts that are added without room', () => {
    const shares = createShares(10);
    shares.add('a', 100);
    expect([shares.used(), shares.hasRoom('b', 0)]).toEqual([100, false]);
  });

  test('never get more than the budget together', () => {
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

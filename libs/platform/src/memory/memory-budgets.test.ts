import { beforeEach, describe, expect, it, test } from '@jest/globals';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import {
  createMemoryBudgets,
  createRecordMemory,
  createShares,
  type RecordMemory,
  type Shares,
} from './memory-budgets.ts';

test('each part shows its budget, and what it uses at the moment of the scrape', async () => {
  const registry = new Registry();
  const budgets = createMemoryBudgets(registry);
  let held = 5;
  budgets.add('queue', 100, () => held);
  budgets.add('cache', 200, () => 7);
  held = 6;

  const metrics = await registry.metrics();

  expect(metrics).toContain('posthorn_memory_budget_bytes{part="queue"} 100');
  expect(metrics).toContain('posthorn_memory_budget_bytes{part="cache"} 200');
  expect(metrics).toContain('posthorn_memory_used_bytes{part="queue"} 6');
  expect(metrics).toContain('posthorn_memory_used_bytes{part="cache"} 7');
});

test('a part is added only once', () => {
  const budgets = createMemoryBudgets(new Registry());
  budgets.add('queue', 100, () => 0);
  expect(() => {
    budgets.add('queue', 100, () => 0);
  }).toThrow('queue has a budget');
});

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

describe('record memory', () => {
  /** What we keep about a record, whatever it carries. */
  const RECORD = 2_048;
  const BUDGET = 100 * RECORD;

  let memory: RecordMemory;

  beforeEach(() => {
    memory = createRecordMemory(BUDGET);
  });

  /** So many records without payloads. */
  function hold(records: number): (() => void)[] {
    return Array.from({ length: records }, () => memory.hold(0).release);
  }

  describe('records that are handled', () => {
    it('count with what they carry and what is kept about them, until they are released', () => {
      const { release } = memory.hold(10_000);
      expect(memory.usedBytes()).toBe(10_000 + RECORD);
      release();
      expect(memory.usedBytes()).toBe(0);
    });

    it('count less when their payload is dropped, and more with a response', () => {
      const { setTo, release } = memory.hold(10_000);
      setTo(100);
      expect(memory.usedBytes()).toBe(100 + RECORD);
      setTo(5_000);
      expect(memory.usedBytes()).toBe(5_000 + RECORD);
      release();
      expect(memory.usedBytes()).toBe(0);
    });

    it('are released once, however often release is called', () => {
      const [release] = hold(2);
      release?.();
      release?.();
      expect(memory.usedBytes()).toBe(RECORD);
    });

    it('are not read when the budget is exhausted, and again when a quarter of it is free', () => {
      const releases = hold(99);
      expect(memory.hasRoom()).toBe(true);
      releases.push(...hold(1));
      expect(memory.hasRoom()).toBe(false);
      for (const release of releases.splice(0, 24)) release();
      expect(memory.hasRoom()).toBe(false);
      releases[0]?.();
      expect(memory.hasRoom()).toBe(true);
    });
  });
});
